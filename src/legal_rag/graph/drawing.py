"""Place the nodes around one node: decisions by year and court, the rest in bands below."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 172, 24  # of a node, in pixels at scale 1
GAP_X, GAP_Y = 26, 8
STACKS = (6, 9, 14, 20, 30)  # nodes of one court and year in a column: the smallest that stays within
WIDE_COLUMNS = 16  # columns of nodes
PADDING = 16  # of a lane
MARGIN = 28  # around everything
HEAD = 34  # height above the lanes, for the years
LEAST_WIDTH = 4 * (WIDTH + GAP_X)  # of the lanes
SPREAD = 7  # pixels between links of the same two nodes
MOST_LANES = 9  # of courts; the others share the last
OTHERS = "Autres juridictions"

Cells = Mapping[tuple[str, int], Sequence[int]]  # numbers of the nodes of a lane and year


class Placed(NamedTuple):
    """What determines a node's position."""

    lane: str  # its court, or its kind
    year: int  # 0: none, placed in a band


class Lane(NamedTuple):
    """A horizontal lane of one court, or a band of nodes without a year."""

    name: str
    colour: int  # from 0
    y: float
    height: float
    dated: bool


class Year(NamedTuple):
    """A column of one year."""

    year: int
    x: float
    width: float
    jumps: bool  # preceded by years without a decision


class Drawing(NamedTuple):
    """The layout."""

    width: float
    height: float
    lanes: list[Lane]
    years: list[Year]
    places: list[tuple[float, float]]  # the upper left corner of each node
    colours: list[int]  # of each node's lane
    lane_of: list[int]  # of each node, from 0

    def link(self, first: int, second: int, nth: int = 0) -> str:
        """Return the SVG path of the nth link between two nodes."""
        (x1, y1), (x2, y2) = self.places[first], self.places[second]
        shift = SPREAD * ((nth + 1) // 2) * (-1 if nth % 2 else 1)
        y1, y2 = y1 + HEIGHT / 2 + shift, y2 + HEIGHT / 2 + shift
        if abs(x2 - x1) < WIDTH:  # one above the other: bend around the side
            x1, x2, bend = x1 + WIDTH, x2 + WIDTH, GAP_X + 10.0
            return f"M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} {x2 + bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
        x1, x2 = (x1 + WIDTH, x2) if x2 > x1 else (x1, x2 + WIDTH)
        bend = (x2 - x1) / 2
        return f"M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"


def draw(nodes: Sequence[Placed]) -> Drawing:
    """Lay out nodes around the first one.

    Its court has the middle lane; years without a decision take no space. Deterministic.
    """
    nodes = _with_few_courts(nodes)
    cells: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number, node in enumerate(nodes):
        cells[node.lane, node.year].append(number)
    stack = next((size for size in STACKS if _count_columns(cells, size) <= WIDE_COLUMNS), STACKS[-1])
    years = _year_columns(cells, stack)
    width = max(LEAST_WIDTH, years[-1].x + years[-1].width - MARGIN if years else 0)
    lanes, places = _dated_lanes(nodes, cells, years, stack)
    below = lanes[-1].y + lanes[-1].height if lanes else MARGIN
    bands, in_bands = _bands(nodes, cells, width, below, len(lanes))
    lanes, places = [*lanes, *bands], places | in_bands
    number_of = {(lane.name, lane.dated): number for number, lane in enumerate(lanes)}
    lane_of = [number_of[node.lane, node.year > 0] for node in nodes]
    bottom = lanes[-1].y + lanes[-1].height + MARGIN
    at = [places[number] for number in range(len(nodes))]
    return Drawing(width + 2 * MARGIN, bottom, lanes, years, at, [lanes[lane].colour for lane in lane_of], lane_of)


def _with_few_courts(nodes: Sequence[Placed]) -> list[Placed]:
    """Merge the courts with the fewest decisions into one lane; the first node's court keeps its own."""
    counts = Counter(node.lane for node in nodes if node.year)
    kept = {nodes[0].lane, *sorted(counts, key=lambda name: (-counts[name], name))[: MOST_LANES - 1]}
    return [node._replace(lane=OTHERS) if node.year and node.lane not in kept else node for node in nodes]


def _count_columns(cells: Cells, stack: int) -> int:
    return sum(math.ceil(most / stack) for most in _most_of_years(cells).values())


def _most_of_years(cells: Cells) -> dict[int, int]:
    """Return, for each year, the largest number of decisions of one court."""
    years = sorted({year for _, year in cells if year})
    return {year: max(len(numbers) for (_, of), numbers in cells.items() if of == year) for year in years}


def _year_columns(cells: Cells, stack: int) -> list[Year]:
    years: list[Year] = []
    x = float(MARGIN)
    for year, most in _most_of_years(cells).items():
        width = math.ceil(most / stack) * (WIDTH + GAP_X)
        years.append(Year(year, x, width, bool(years) and years[-1].year < year - 1))
        x += width
    return years


def _dated_lanes(
    nodes: Sequence[Placed], cells: Cells, years: Sequence[Year], stack: int
) -> tuple[list[Lane], dict[int, tuple[float, float]]]:
    counts = Counter(node.lane for node in nodes if node.year)
    lanes: list[Lane] = []
    places: dict[int, tuple[float, float]] = {}
    y = float(MARGIN + HEAD)
    for name in _centred(nodes[0], counts):
        rows = max(min(stack, len(numbers)) for (lane, year), numbers in cells.items() if lane == name and year)
        height = rows * (HEIGHT + GAP_Y) - GAP_Y + 2 * PADDING + 12  # room for the lane's name
        lanes.append(Lane(name, len(lanes), y, height, dated=True))
        for year in years:
            for nth, number in enumerate(cells.get((name, year.year), ())):
                column, row = divmod(nth, stack)
                left = year.x + GAP_X / 2 + column * (WIDTH + GAP_X)
                places[number] = (left, y + 12 + PADDING + row * (HEIGHT + GAP_Y))
        y += height
    return lanes, places


def _centred(first: Placed, counts: Mapping[str, int]) -> list[str]:
    """Order lanes: the first node's in the middle, the fullest next to it."""
    middle = [first.lane] if first.year else []
    rest = sorted(counts.keys() - middle, key=lambda name: (-counts[name], name))
    return [*reversed(rest[1::2]), *middle, *rest[::2]]


def _bands(
    nodes: Sequence[Placed], cells: Cells, width: float, y: float, colour: int
) -> tuple[list[Lane], dict[int, tuple[float, float]]]:
    """Place nodes without a year in rows as wide as the lanes; the first node, if it is one, is centred."""
    bands: list[Lane] = []
    places: dict[int, tuple[float, float]] = {}
    per_row = max(1, int(width // (WIDTH + GAP_X)))
    for name in dict.fromkeys(node.lane for node in nodes if not node.year):
        numbers = [number for number in cells[name, 0] if number]
        top = y + 12 + PADDING
        if not nodes[0].year and nodes[0].lane == name:
            places[0] = (MARGIN + (width - WIDTH) / 2, top)
            top += HEIGHT + 2 * GAP_Y
        for nth, number in enumerate(numbers):
            row, column = divmod(nth, per_row)
            left = MARGIN + GAP_X / 2 + column * (WIDTH + GAP_X)
            places[number] = (left, top + row * (HEIGHT + GAP_Y))
        rows = math.ceil(len(numbers) / per_row)
        height = top + rows * (HEIGHT + GAP_Y) + PADDING - GAP_Y - y
        bands.append(Lane(name, colour + len(bands), y, height, dated=False))
        y += height
    return bands, places


def years_of(nodes: Iterable[Placed]) -> tuple[int, int]:
    """Return the first and the last year, or zeros."""
    years = [node.year for node in nodes if node.year]
    return (min(years), max(years)) if years else (0, 0)
