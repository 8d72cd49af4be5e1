"""Settings of the commands from `legal-rag.toml`: values of options, and of settings that have none."""

import os
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from json import dumps
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

FILE = "legal-rag.toml"
ORIGINS = {
    None: "default",
    ParameterSource.DEFAULT: "default",
    ParameterSource.DEFAULT_MAP: "file",
    ParameterSource.ENVIRONMENT: "environment",
}
# What a file says may come from anyone who can write into a folder above: it runs no code.
REFUSED = {
    "trust_remote_code": "expected --trust-remote-code on the command line",
    "api_key": "expected GENERATOR_API_KEY in the environment",
    "extract_api_key": "expected LANGEXTRACT_API_KEY in the environment",
}
# Where questions and keys are sent: a file that was merely found does not say it.
ADDRESSES = ("api_base", "extract_api_base")
_KINDS: tuple[tuple[type[click.ParamType], tuple[type, ...], str], ...] = (
    (click.types.BoolParamType, (bool,), "true or false"),
    (click.types.IntParamType, (int,), "a whole number"),
    (click.types.FloatParamType, (int, float), "a number"),
)


class Setting(click.Option):
    """A parameter of a command that only a settings file gives a value: no option names it."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.hidden = True

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Leave the command line as it is."""


def setting(name: str, kind: Any, default: Any = None) -> Callable[[Any], Any]:
    """Make a setting of a command; its kind is a type, a `Literal`, or a type or None."""
    if get_origin(kind) is Literal:
        kind = click.Choice(get_args(kind))
    elif get_args(kind):
        kind = get_args(kind)[0]
    return click.option(f"--{name.replace('_', '-')}", name, cls=Setting, type=kind, default=default)


def settings_of(defaults: Any, *names: str) -> Callable[[Any], Any]:
    """Make settings of a configuration's fields, with its types and defaults."""
    kinds = get_type_hints(type(defaults))

    def add(command: Any) -> Any:
        for name in reversed(names):
            command = setting(name, kinds[name], getattr(defaults, name))(command)
        return command

    return add


class SettingsFile(NamedTuple):
    """What a settings file says: keys for every command, and a table for each."""

    path: Path | None = None
    values: Mapping[str, Any] = {}
    is_named: bool = False  # by `--config`, not found in a folder above

    def of_command(self, commands: click.Group, name: str) -> dict[str, Any]:
        """Return a command's settings by its name, as click's `default_map` wants them.

        ValueError if a table or a key is unknown, or a value is not of the kind expected.
        """
        if not self.values:
            return {}
        every = {key: value for key, value in self.values.items() if not isinstance(value, dict)}
        names = commands.list_commands(click.Context(commands))
        for table in self.values.keys() - every.keys():
            self._check(f"[{table}]", table, names)
        command = _command(commands, name)
        known = _parameters(command)
        if every.keys() - known:
            known = known.union(*(_parameters(_command(commands, other)) for other in names))
        for key in every:
            self._check(key, key, known)
        return {name: self._settings(command, self.values.get(name, {}), every, name)}

    def _settings(
        self, command: click.Command, table: Mapping[str, Any], every: Mapping[str, Any], title: str
    ) -> dict[str, Any]:
        if isinstance(command, click.Group):
            for key, value in table.items():
                self._check(f"[{title}.{key}]", key, command.commands if isinstance(value, dict) else ())
            return {
                name: self._settings(sub, table.get(name, {}), every, f"{title}.{name}")
                for name, sub in command.commands.items()
            }
        parameters = {option.name: option for option in _options(command)}
        for key in table:
            self._check(f"[{title}] {key}", key, parameters)
        values = {key: value for key, value in {**every, **table}.items() if key in parameters}
        values = {
            key: [value] if parameters[key].multiple and not isinstance(value, list) else value
            for key, value in values.items()
        }
        for key, value in values.items():
            if problem := _problem(parameters[key], value):
                where = f"[{title}] " if key in table else ""
                raise ValueError(f"{self.path}: {where}{key} = {dumps(value, default=str)}: {problem}")
        return values

    def _check(self, where: str, name: str, known: Collection[str | None]) -> None:
        if name in REFUSED:
            raise ValueError(f"{self.path}: {where} is refused in a file ({REFUSED[name]})")
        if name in ADDRESSES and not self.is_named:
            raise ValueError(f"{self.path}: {where} is read from a file named by 'legal-rag --config FILE' alone")
        if name not in known:
            near = get_close_matches(name, [each for each in known if each], n=1)
            hint = f"did you mean {near[0]}?" if near else "'legal-rag info --settings' lists them"
            raise ValueError(f"{self.path}: no setting {where} ({hint})")


@dataclass
class Invocation:
    """What a command line asks for, as far as it is known: the context's `obj`."""

    command: str = ""
    settings: SettingsFile = field(default_factory=SettingsFile)
    indexes: list[Path] = field(default_factory=list)


def read_settings(file: str | None) -> SettingsFile:
    """Read the settings file named, or else the nearest one upwards from the current folder, if there is one.

    FileNotFoundError if there is no file of that name; ValueError if it is not TOML.
    """
    path = Path(file).expanduser() if file else None
    if path is None:
        folder = Path.cwd()
        path = next((above / FILE for above in (folder, *folder.parents) if (above / FILE).is_file()), None)
    if path is None:
        return SettingsFile()
    if not path.is_file():
        raise FileNotFoundError(f"no settings file {path}")
    try:
        return SettingsFile(path, tomllib.loads(path.read_text("utf-8")), is_named=file is not None)
    except ValueError as error:  # of TOML, or of UTF-8
        raise ValueError(f"{path} is not a file of settings in TOML: {error}") from error


class SettingInForce(NamedTuple):
    """One setting of a command, as it would run now without further options."""

    command: str
    name: str
    value: Any
    origin: str  # default, file or environment


def settings_in_force(commands: click.Group, file: SettingsFile) -> Iterator[SettingInForce]:
    """Give every setting of every command: its value, and where that comes from."""
    root = click.Context(commands)
    for name in commands.list_commands(root):
        root.default_map = file.of_command(commands, name)
        yield from _in_force(_command(commands, name), name, root, name)


def _in_force(command: click.Command, name: str, parent: click.Context, title: str) -> Iterator[SettingInForce]:
    # A resilient context parses an empty command line, whatever is required, and runs nothing.
    context = command.make_context(name, [], parent, resilient_parsing=True)
    if isinstance(command, click.Group):
        for sub_name, sub in command.commands.items():
            yield from _in_force(sub, sub_name, context, f"{title}.{sub_name}")
        return
    for option in _options(command):
        origin = ORIGINS[context.get_parameter_source(str(option.name))]
        yield SettingInForce(title, str(option.name), context.params[str(option.name)], origin)


def format_settings(settings: Iterable[SettingInForce]) -> str:
    """Write settings as a settings file, each with its origin; what has no value is a comment."""
    from legal_rag.extraction.schemas import KEY_VARIABLE

    lines, title = [], ""
    for command, name, value, origin in settings:
        if command != title:
            title = command
            lines += ["", f"[{command}]"]
        unset = value is None or value == ()
        lines.append(f"# {name} =" if unset else f"{name} = {dumps(value, ensure_ascii=False)}  # {origin}")
    keys = [f"# {name} is set in the environment" for name in ("GENERATOR_API_KEY", KEY_VARIABLE) if name in os.environ]
    return "\n".join([*keys, *lines]).strip()


def _command(commands: click.Group, name: str) -> click.Command:
    command = commands.get_command(click.Context(commands), name)
    if command is None:
        raise LookupError(name)
    return command


def _options(command: click.Command) -> list[click.Option]:
    return [parameter for parameter in command.params if isinstance(parameter, click.Option)]


def _parameters(command: click.Command) -> set[str | None]:
    if isinstance(command, click.Group):
        return set().union(*map(_parameters, command.commands.values()))
    return {option.name for option in _options(command)}


def _problem(option: click.Option, value: Any) -> str:
    """Return what is expected in place of a value; empty for a value of the right kind."""
    kinds, expected = next((row[1:] for row in _KINDS if isinstance(option.type, row[0])), ((str,), "a text"))
    for each in value if option.multiple else [value]:
        if type(each) not in kinds:
            return f"expected {expected}"
        try:
            option.type.convert(each, option, None)
        except click.BadParameter as error:
            return error.message
    return ""
