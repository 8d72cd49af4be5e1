"""Programs that try to escape from the sandbox, by what they try; `test_sandbox_escapes.py` runs them.

They find these names: `GOT`, which a program prints that gets through; `CANARY` and `OUTSIDE`, a file and a folder that
anybody may read and write; `PACKAGE`, a file of ours; `PARENT`, our process; `PORT` and `UNIX`, where somebody listens;
`echo`, the one function given.
"""

# Walks from the function to the child's own modules, and to the C library in there.
REACH = """
import os, sys
here = echo.__globals__
runner = next(c.cell_contents for c in echo.__closure__ if hasattr(c.cell_contents, "_channel"))
connection = runner._channel._connection
kernel, C = here["kernel"], here["kernel"].ctypes
def raw(number, *given):
    given = [C.c_long(one) if isinstance(one, int) else one for one in given]
    result = kernel._libc.syscall(C.c_long(number), *given)
    print(GOT if result >= 0 else os.strerror(C.get_errno()), result)
    return result
def frame(kind, body, name=b"", length=None):
    return bytes((kind, len(name))) + (len(body) if length is None else length).to_bytes(4, "big") + name + body
"""
READY, PRINTED, CALL, DONE = range(4)  # kinds of messages, as their first byte tells

# Each ends in an error.
FILES = {
    "reads a file with open": "print(GOT, open(CANARY).read())",
    "reads a file with os.open": "import os\nprint(GOT, os.read(os.open(CANARY, os.O_RDONLY), 99))",
    "reads a file with FileIO": "import io\nprint(GOT, io.FileIO(CANARY).read())",
    "reads a file with pathlib": "from pathlib import Path\nprint(GOT, Path(CANARY).read_text())",
    "reads the users of the system": "print(GOT, open('/etc/passwd').read())",
    "reads the package's own source": "print(GOT, open(PACKAGE).read())",
    "reads a file through dots": "print(GOT, open('../' * 40 + CANARY[1:]).read())",
    "reads a file by a path of bytes": "print(GOT, open(CANARY.encode()).read())",
    "reads a file through an opener": "import os\nprint(GOT, open('x', opener=lambda *_: os.open(CANARY, 0)).read())",
    "reads the keys of the user": "import os\nprint(GOT, open(os.path.expanduser('~/.ssh/id_rsa')).read())",
    "reads what the user has cached": "import os\nprint(GOT, os.listdir('/root/.cache'))",
    "reads a file from an open folder on": (
        "import os\nhere = os.open('.', os.O_RDONLY)\nprint(GOT, os.open('../outside/canary.txt', 0, dir_fd=here))"
    ),
    "lists the homes": "import os\nprint(GOT, os.listdir('/home'))",
    "writes to a file outside": "open(CANARY, 'w').write('x')",
    "appends to a file outside": "open(CANARY, 'a').write('x')",
    "makes a file outside": "open(OUTSIDE + '/new', 'w')",
    "makes a folder outside": "import os\nos.mkdir(OUTSIDE + '/new')",
    "deletes a file outside": "import os\nos.remove(CANARY)",
    "renames a file outside": "import os\nos.rename(CANARY, CANARY + '2')",
    "moves a file in": "import os\nos.rename(CANARY, 'mine')",
    "moves a file out": "import os\nopen('mine', 'w').write('x')\nos.rename('mine', OUTSIDE + '/mine')",
    "empties a file outside": "import os\nos.truncate(CANARY, 0)",
    "links to a file outside": "import os\nos.symlink(CANARY, 'link')\nprint(GOT, open('link').read())",
    "links hard to a file outside": "import os\nos.link(CANARY, 'hard')\nprint(GOT, open('hard').read())",
    "opens a device": "print(GOT, open('/dev/zero', 'rb').read(1))",
    "opens the terminal": "print(GOT, open('/dev/tty', 'w').write('x'))",
    "writes to shared memory": "print(GOT, open('/dev/shm/escape', 'w').write('x'))",
    "changes its folder": "import os\nos.chdir('..')\nprint(GOT)",
    "changes its root": "import os\nos.chroot('.')\nprint(GOT)",
    "gives a file to others": "import os\nopen('x', 'w')\nos.chmod('x', 0o4777)\nprint(GOT)",
    "makes a pipe in its folder": "import os\nos.mkfifo('p')\nprint(GOT)",
    "makes a device in its folder": "import os\nos.mknod('d')\nprint(GOT)",
    "reads its environment": "print(GOT, open('/proc/self/environ').read())",
    "reads its parent's environment": "print(GOT, open(f'/proc/{PARENT}/environ').read())",
    "reads its parent's memory": "open(f'/proc/{PARENT}/mem', 'rb').read(1)\nprint(GOT)",
    "writes to its own memory": "open('/proc/self/mem', 'r+b')\nprint(GOT)",
    "reads its own memory map": "open('/proc/self/maps').read()\nprint(GOT)",
    "follows its root through proc": "print(GOT, open('/proc/self/root' + CANARY).read())",
    "follows its parent's root through proc": "print(GOT, open(f'/proc/{PARENT}/root' + CANARY).read())",
    "lists its parent's descriptors": "import os\nprint(GOT, os.listdir(f'/proc/{PARENT}/fd'))",
    "asks to be spared when memory is short": "open('/proc/self/oom_score_adj', 'w').write('-1000')\nprint(GOT)",
}

# Each ends in an error.
PROCESSES = {
    "imports subprocess": "import subprocess\nprint(GOT)",
    "imports multiprocessing": "import multiprocessing\nprint(GOT)",
    "imports threading": "import threading\nprint(GOT)",
    "imports asyncio": "import asyncio\nprint(GOT)",
    "runs a command": "import os\nif os.system('id') == 0: print(GOT)\nraise OSError",
    "opens a pipe to a command": "import os\nprint(GOT, os.popen('id').read())",
    "forks": "import os\nos.fork()\nprint(GOT)",
    "forks below a terminal": "os.forkpty()\nprint(GOT)",
    "spawns": "import os\nos.posix_spawn('/bin/true', ['true'], {})\nprint(GOT)",
    "becomes another program": "import os\nos.execv('/bin/true', ['true'])\nprint(GOT)",
    "starts a thread": "import _thread\n_thread.start_new_thread(print, (GOT,))",
    "kills its parent": "import os\nos.kill(PARENT, 9)\nprint(GOT)",
    "kills its group": "import os\nos.killpg(0, 9)\nprint(GOT)",
    "kills everybody": "import os\nos.kill(-1, 9)\nprint(GOT)",
    "stops itself": "import os\nos.kill(os.getpid(), 19)\nprint(GOT)",
    "becomes another user": "import os\nos.setuid(0 if os.getuid() else 1)\nprint(GOT)",
    "opens a session of its own": "import os\nos.setsid()\nprint(GOT)",
    "takes a higher priority": "import os\nos.nice(-5)\nprint(GOT)",
    "moves to other processors": "import os\nos.sched_setaffinity(0, {0})\nprint(GOT)",
    "makes a pipe": "import os\nos.pipe()\nprint(GOT)",
    "makes a file in memory": "import os\nos.memfd_create('x')\nprint(GOT)",
    "copies a descriptor": "import os\nos.dup(1)\nprint(GOT)",
    "asks for the system's name": "import os\nprint(GOT, os.uname())",
    "sets an alarm": "import signal\nsignal.setitimer(0, 0.1)\nprint(GOT)",
    "ignores a signal": "import signal\nsignal.signal(15, 1)\nprint(GOT)",
    "blocks signals": "import signal\nsignal.pthread_sigmask(0, {15})\nprint(GOT)",
    "raises its limits": "kernel.resource.setrlimit(9, (-1, -1))\nprint(GOT)",
    "maps a file that others see": "import os\nC.pythonapi\nraw(9, 0, 4096, 3, 1, os.open('m', 66), 0)\nraise OSError",
    "imports sockets": "import socket\nprint(GOT)",
    "asks for a page": "from urllib.request import urlopen\nprint(GOT, urlopen(f'http://127.0.0.1:{PORT}'))",
    "connects to a port": "s = type(connection)(2, 1)\ns.connect(('127.0.0.1', PORT))\nprint(GOT)",
    "connects to a port by IPv6": "s = type(connection)(10, 1)\ns.connect(('::1', PORT))\nprint(GOT)",
    "connects to a Unix socket": "s = type(connection)(1, 1)\ns.connect(UNIX)\nprint(GOT)",
    "connects to an abstract socket": "s = type(connection)(1, 1)\ns.connect(ABSTRACT)\nprint(GOT)",
    "sends a datagram": "s = type(connection)(2, 2)\ns.sendto(b'x', ('127.0.0.1', PORT))\nprint(GOT)",
    "resolves a name": "here['_socket'].getaddrinfo('example.org', 80)\nprint(GOT)",
    "lists the network's interfaces": "print(GOT, here['_socket'].if_nameindex())",
    "connects its channel elsewhere": "connection.connect(UNIX)\nprint(GOT)",
    "listens on its channel": "connection.listen()\nprint(GOT)",
}

# Each is refused by the kernel: number and arguments of a system call of x86-64.
SYSTEM_CALLS = {
    "makes a TCP socket": "41, 2, 1, 0",
    "makes an IPv6 socket": "41, 10, 1, 0",
    "makes a Unix socket": "41, 1, 1, 0",
    "makes a packet socket": "41, 17, 3, 768",
    "makes a netlink socket": "41, 16, 3, 0",
    "makes a socket to the host of a virtual machine": "41, 40, 1, 0",
    "makes a pair of sockets": "53, 1, 1, 0, (C.c_int * 2)()",
    "passes a descriptor through its channel": "46, connection.fileno(), 0, 0",
    "forks": "57",
    "forks and shares its memory": "58",
    "clones": "56, 17, 0, 0, 0, 0",
    "clones a thread": "56, 0x10F00, 0, 0, 0, 0",
    "clones by the newer call": "435, (C.c_uint64 * 11)(0, 0, 0, 0, 17), 88",
    "runs a file": "59, b'/bin/true', 0, 0",
    "runs an open file": "322, 0, b'', 0, 0, 0x1000",
    "asks to be traced": "101, 0, 0, 0, 0",
    "attaches to its parent": "101, 16, PARENT, 0, 0",
    "seizes its parent": "101, 0x4206, PARENT, 0, 0",
    "reads its parent's memory": "310, PARENT, (C.c_uint64 * 2)(), 1, (C.c_uint64 * 2)(), 1, 0",
    "writes its parent's memory": "311, PARENT, (C.c_uint64 * 2)(), 1, (C.c_uint64 * 2)(), 1, 0",
    "opens its parent as a process": "434, PARENT, 0",
    "takes a descriptor of its parent": "438, 0, 0, 0",
    "compares its memory with its parent's": "312, PARENT, os.getpid(), 0, 0, 0",
    "kills its parent": "62, PARENT, 9",
    "kills everybody": "62, -1, 9",
    "kills a thread of its parent": "234, PARENT, PARENT, 9",
    "stops itself": "62, os.getpid(), 19",
    "queues a signal": "129, PARENT, 15, (C.c_uint64 * 16)()",
    "signals by a process descriptor": "424, 0, 9, 0, 0",
    "catches a signal": "13, 24, (C.c_uint64 * 4)(1), 0, 8",
    "blocks all signals": "14, 0, (C.c_uint64 * 1)(2**64 - 1), 0, 8",
    "sets a timer": "222, 0, 0, (C.c_uint64 * 1)()",
    "becomes root": "105, 0",
    "takes capabilities": "126, (C.c_uint32 * 2)(0x20080522, 0), (C.c_uint32 * 6)(*[2**32 - 1] * 6)",
    "lets itself be looked into": "157, 4, 1, 0, 0, 0",
    "adds a filter of its own": "317, 1, 0, (C.c_uint64 * 2)()",
    "leaves for new namespaces": "272, 0x10000000",
    "enters its parent's namespaces": "308, 0, 0",
    "mounts": "165, b'none', b'/', b'tmpfs', 0, 0",
    "opens a tree of mounts": "428, -100, b'/', 1",
    "turns the root around": "155, b'.', b'.'",
    "changes its root": "161, b'/'",
    "changes its folder": "80, b'/'",
    "makes a link": "88, CANARY.encode(), b'link'",
    "makes a device": "133, b'd', 0o60600, 0x800",
    "changes a mode": "90, b'.', 0o777",
    "changes what a new file may": "95, 0o777",
    "opens a file as a mere path": "257, -100, CANARY.encode(), 0x200000",
    "opens a file by the newest call": "437, -100, CANARY.encode(), (C.c_uint64 * 3)(), 24",
    "opens a file by its handle": "304, -100, (C.c_uint64 * 20)(), 0",
    "makes a file without a name": "257, -100, b'.', 0x410002, 0o600",
    "makes a file in memory": "319, b'x', 0",
    "makes secret memory": "447, 0",
    "writes several pieces": "20, 1, (C.c_uint64 * 2)(), 1",
    "reserves space": "285, 1, 0, 0, 10**6",
    "copies within the kernel": "326, 0, 0, 1, 0, 10**6, 0",
    "makes an io_uring": "425, 8, (C.c_uint64 * 15)()",
    "handles its own page faults": "323, 1",
    "loads BPF": "321, 5, (C.c_uint64 * 20)(), 120",
    "counts the processor's events": "298, (C.c_uint64 * 16)(), 0, -1, -1, 0",
    "watches files": "253",
    "makes a key": "248, b'user', b'x', b'y', 1, -3",
    "reads keys": "250, 0, -3, 0",
    "makes memory that can be executed": "9, 0, 4096, 7, 0x22, -1, 0",
    "makes its memory executable": "10, (C.addressof(C.create_string_buffer(8192)) + 4095) & ~4095, 4096, 7",
    "shares memory": "9, 0, 4096, 3, 0x21, -1, 0",
    "makes a System V segment": "29, 0, 4096, 0o1666",
    "makes a message queue": "240, b'q', 0o102, 0o600, 0",
    "raises its limits": "302, 0, 9, (C.c_uint64 * 2)(2**64 - 1, 2**64 - 1), 0",
    "reads the kernel's log": "103, 3, (C.c_char * 100)(), 100",
    "loads a module into the kernel": "175, 0, 0, b''",
    "sets the clock": "227, 0, (C.c_uint64 * 2)()",
    "reboots": "169, 0xFEE1DEAD, 672274793, 0, 0",
    "types into a terminal": "16, 0, 0x5412, b'x'",
    "copies a descriptor onto its lifeline": "33, 0, 256",
    "closes its lifeline": "3, 256",
    "closes its lifeline by a number with higher bits": "3, 256 + (1 << 32)",
    "closes all descriptors": "436, 3, 2**32 - 1, 0",
    "takes the signal off its lifeline": "72, 256, 10, 0",
    "calls what does not exist": "9999",
    "reads the clock of its parent's computing": "228, ~PARENT << 3 | 2, (C.c_uint64 * 2)()",
    "reads the clock of its own computing by its number": "228, ~os.getpid() << 3 | 2, (C.c_uint64 * 2)()",
    "reads the clock of a thread of its parent": "228, ~PARENT << 3 | 6, (C.c_uint64 * 2)()",
    "reads the clock of a device": "228, ~3 << 3 | 3, (C.c_uint64 * 2)()",
    "reads a clock by a number with higher bits": "228, 1 | 1 << 32, (C.c_uint64 * 2)()",
    "reads a clock that there is not": "228, 12, (C.c_uint64 * 2)()",
    "asks how exact its parent's clock is": "229, ~PARENT << 3 | 2, (C.c_uint64 * 2)()",
    "sleeps by its parent's clock": "230, ~PARENT << 3 | 2, 0, (C.c_uint64 * 2)(0, 1), 0",
    "exchanges two files": "316, -100, b'.', -100, b'.', 2",
    "leaves a device where a file was": "316, -100, b'.', -100, b'.', 4",
    "renames by flags that are not known": "316, -100, b'.', -100, b'.', 1 << 31",
    "shuts half of its channel down": "48, connection.fileno(), 1",
    "sends out of turn": "44, connection.fileno(), b'x', 1, 1, 0, 0",
    "sends to an address": "44, connection.fileno(), b'x', 1, 0, b'\\1\\0/x', 4",
    "receives descriptors": "47, connection.fileno(), (C.c_uint64 * 7)(), 0",
    "raises its limit of computing": "160, 0, (C.c_uint64 * 2)(10**9, 10**9)",
    "takes the death of its parent as no reason": "157, 1, 0, 0, 0, 0",
    "changes times of a file": "280, -100, b'.', 0, 0",
}

# Program; how it may end; what the result says.
PYTHON = {
    "reads its environment": ("import os\nprint(dict(os.environ), os.getenv('PATH'))", "ok", "{} None"),
    "imports ctypes": ("import ctypes\nprint(GOT)", "error", "n'existe pas dans le bac à sable"),
    "imports what ctypes is made of": ("import _ctypes\nprint(GOT)", "error", "n'existe pas dans le bac à sable"),
    "imports signals": ("import signal\nprint(GOT)", "error", "n'existe pas dans le bac à sable"),
    "imports what sockets are made of": ("import _socket\nprint(GOT)", "error", "n'existe pas dans le bac à sable"),
    "imports cffi": ("import cffi\nprint(GOT)", "error", "n'existe pas dans le bac à sable"),
    "imports the package": ("import legal_rag\nprint(GOT)", "error", "n'existe pas dans le bac à sable"),
    "imports through importlib": (
        "import importlib\nimportlib.import_module('socket')\nprint(GOT)",
        "error",
        "n'existe pas dans le bac à sable",
    ),
    "imports through builtins": (
        "__builtins__.__import__('pty')\nprint(GOT)",
        "error",
        "n'existe pas dans le bac à sable",
    ),
    "puts a finder of its own first": (
        """
        import sys
        from importlib.machinery import PathFinder
        sys.meta_path.insert(0, PathFinder)
        sys.path.append(PACKAGE.rsplit("/", 2)[0])
        import legal_rag
        print(GOT)
        """,
        "error",
        "n'existe pas dans le bac à sable",
    ),
    "loads what is built in": (
        """
        from importlib.machinery import BuiltinImporter
        BuiltinImporter.load_module("posix").system("id")
        print(GOT)
        """,
        "error",
        "interdit dans le bac à sable",
    ),
    "loads an extension of its own": (
        """
        from importlib.machinery import ExtensionFileLoader, ModuleSpec
        open("x.so", "wb").write(b"ELF")
        ExtensionFileLoader("x", "x.so").create_module(ModuleSpec("x", None, origin="x.so"))
        print(GOT)
        """,
        "error",
        "ImportError",
    ),
    "walks the subclasses to a file": (
        """
        for kind in object.__subclasses__():
            for one in [kind, *type.__subclasses__(kind)]:
                if one.__name__ == "_RawIOBase":
                    print(GOT, [k for k in one.__subclasses__() if "File" in k.__name__][0](CANARY).read())
        raise OSError
        """,
        "error",
        "Error",
    ),
    "walks the subclasses to a process": (
        "print([c for c in object.__subclasses__() if c.__name__ == 'Popen'])",
        "ok",
        "[]",
    ),
    "walks the frames to the child": (
        """
        import sys
        frame = sys._getframe()
        while frame.f_back:
            frame = frame.f_back
        frame.f_globals["sys"].modules.clear()
        print(GOT, open(CANARY).read())
        """,
        "error killed",
        "",
    ),
    "walks a generator's frame to the child": (
        """
        def walk():
            yield walker.gi_frame.f_back.f_back
        walker = walk()
        for frame in walker:
            print(GOT, frame.f_builtins["open"](CANARY).read())
        """,
        "error",
        "Error",
    ),
    "walks a traceback's frame to the child": (
        """
        try:
            1 / 0
        except Exception as error:
            frame = error.__traceback__.tb_frame.f_back
            print(GOT, frame.f_globals["os"].open(CANARY, 0))
        """,
        "error",
        "Error",
    ),
    "lists all objects": ("import gc\nprint(GOT)", "error", "n'existe pas dans le bac à sable"),
    "adds an audit hook": ("import sys\nsys.addaudithook(lambda *_: print(GOT))\nopen('x', 'w')", "ok", ""),
    "traces the child": ("import sys\nsys.settrace(print)\nprint(GOT)", "error", "interdit dans le bac à sable"),
    "replaces what the audit hook calls": (
        """
        import os
        os.path.normpath = os.path.join = os.fsdecode = os.fspath = lambda *_: "/"
        print(GOT, open(CANARY).read())
        """,
        "error",
        "Error",
    ),
    "empties the audit hook's lists": (
        """
        import os, sys
        for module in list(sys.modules.values()):
            if hasattr(module, "REFUSED"):
                module.REFUSED = module.PATHS = ()
        echo.__globals__["imports"].REFUSED = ()
        os.system("id")
        print(GOT)
        """,
        "error",
        "interdit dans le bac à sable",
    ),
    "makes code of bytes of its own": (
        """
        def f(): pass
        f.__code__ = f.__code__.replace(co_code=b"\\xff" * 8, co_consts=())
        f()
        """,
        "ok error killed timeout",
        "",
    ),
    "unmarshals code": (
        "import marshal\nexec(marshal.loads(marshal.dumps(compile('open(CANARY)', 'x', 'exec'))))\nprint(GOT)",
        "error",
        "Error",
    ),
    "breaks the builtins": (
        """
        import builtins
        for name in dir(builtins):
            if name[0] != "_" and name not in ("setattr", "None"):
                setattr(builtins, name, None)
        """,
        "ok error killed",
        "",
    ),
    "prints to nothing": ("import sys\nsys.stdout = sys.stderr = None\nprint('perdu')", "ok", ""),
    "closes what it prints to": ("import sys\nsys.stdout.close()\nprint('perdu')", "ok error", ""),
    "raises an error whose text raises": (
        "class A(Exception):\n    def __str__(self): raise SystemExit\nraise A",
        "error",
        "A",
    ),
    "raises an error whose type has no name": (
        """
        class Nameless(type):
            __name__ = property(lambda self: 1 / 0)
        class A(Exception, metaclass=Nameless):
            pass
        raise A
        """,
        "error killed",
        "",
    ),
    "passes arguments that pretend to be plain": (
        """
        class Text(str):
            def __len__(self): return -1
        class Numbers(list):
            __class__ = property(lambda self: exit)
        class Number(int):
            def __repr__(self): return "[" * 10**6
        echo([Text("x"), Number(3)])
        echo(Numbers())
        """,
        "ok error",
        "",
    ),
    "ends its process": ("import os\nos._exit(0)", "killed", "a mis fin à son processus (code 0)"),
    "ends its process with a code": ("import os\nos._exit(42)", "killed", "a mis fin à son processus (code 42)"),
    "aborts": ("import os\nos.abort()", "killed", "s'est effondré (SIG"),
    "leaves by SystemExit": ("raise SystemExit('adieu')", "error", "SystemExit: adieu"),
    "leaves something for the end": ("import atexit\natexit.register(print, GOT)", "error", "n'existe pas"),
    "leaves something to be cleared away": (
        "class A:\n    def __del__(self): open(CANARY, 'w').write(GOT[:3])\na = A()\ndel a\nprint('vu')",
        "ok",
        "vu",
    ),
}

# Program; how it may end; what the result says.
EXHAUSTION = {
    "loops for ever": ("while True: pass", "timeout", "arrêté : plus de 0."),
    "loops for ever and catches everything": (
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "timeout",
        "arrêté : plus de 0.",
    ),
    "loops for ever in C": ("sum(iter(int, 1))", "timeout", "arrêté : plus de 0."),
    "loops for ever as it ends": (
        "class A:\n    def __del__(self):\n        while True: pass\na = A()\ndel a",
        "timeout",
        "arrêté : plus de 0.",
    ),
    "sleeps for ever": ("import time\ntime.sleep(10**6)", "timeout", "arrêté : plus de 0.2 s ;"),
    "prints an object whose text never ends": (
        "class A:\n    def __str__(self):\n        while True: pass\nprint(A())",
        "timeout",
        "arrêté : plus de 0.",
    ),
    "raises an error whose text never ends": (
        "class A(Exception):\n    def __str__(self):\n        while True: pass\nraise A",
        "timeout",
        "arrêté : plus de 0.",
    ),
    "backtracks for ever": ("import re\nre.match('(a|aa)+$', 'a' * 200 + 'b')", "timeout", "arrêté : plus de 0."),
    "computes a power for ever": ("3 ** 10**9", "timeout", "arrêté : plus de 0."),
    "writes a number for ever": ("str(1 << 30_000_000)", "error", "Exceeds the limit (4300 digits)"),
    "takes memory by a list": ("x = []\nwhile True: x.append('x' * 10**6)", "error killed", "emo"),
    "takes memory by one array": ("x = bytearray(10**12)", "error", "MemoryError"),
    "takes memory by doubling": ("x = 'x'\nwhile True: x += x", "error killed", "emo"),
    "takes memory and catches the error": (
        """
        x = []
        for _ in range(3):
            try:
                while True: x.append(bytes(10**6))
            except MemoryError: print("plein")
        """,
        "ok error killed",
        "",
    ),
    "takes memory by small objects": ("x = ()\nwhile True: x = (x, [0] * 1000)", "error killed timeout", ""),
    "takes memory in a regular expression": ("import re\nre.compile('(a{1,60000}){1,60000}')", "error killed ok", ""),
    "recurses for ever": ("def f(): f()\nf()", "error", "RecursionError"),
    "recurses beyond all limits": (
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(): return f() + 1\nf()",
        "error killed timeout",
        "",
    ),
    "recurses in C": (
        "import sys\nsys.setrecursionlimit(10**9)\nx = []\nfor _ in range(10**5): x = [x]\nrepr(x)",
        "error killed timeout",
        "",
    ),
    "nests brackets without end": ("exec('(' * 10**5)", "error killed", ""),
    "nests signs without end": ("exec('-' * 10**5 + '1')", "error killed", ""),
    "prints without end": ("while True: print('x' * 1000)", "timeout", "… [la suite n'a pas été conservée]"),
    "prints without an end of line": ("while True: print('x', end='')", "timeout", "[la suite n'a pas été conservée]"),
    "prints one enormous line": ("print('x' * 10**7)", "ok", "… [9998001 caractères de plus]"),
    "raises an enormous error": ("raise ValueError('x' * 10**7)", "error", "caractères de moins]"),
    "chains errors without end": (
        """
        last = None
        for n in range(2000):
            error = ValueError(n)
            error.__cause__, last = last, error
        raise last
        """,
        "error killed timeout",
        "",
    ),
    "fills the disk with one file": (
        "with open('x', 'wb') as f:\n    while True: f.write(b'x' * 10**5)",
        "error",
        "[Errno 28]",
    ),
    "fills the disk with many files": (
        "for n in range(10**4):\n    with open(f'{n}', 'wb') as f: f.write(b'x' * 10**5)",
        "error",
        "[Errno 28]",
    ),
    "fills the disk over and over": (
        "import os\nwhile True:\n    with open('x', 'wb') as f: f.write(b'x' * 10**5)\n    os.remove('x')",
        "error",
        "[Errno 28]",
    ),
    "makes files without end": ("for n in range(10**6): open(f'{n}', 'w').close()", "error", "[Errno 28]"),
    "makes folders without end": (
        "import os\np = 'd'\nfor _ in range(10**4):\n    os.mkdir(p)\n    p += '/d'",
        "error",
        "[Errno 28]",
    ),
    "makes a file of enormous length": ("with open('x', 'wb') as f: f.truncate(10**12)", "error", "[Errno 2"),
    "makes an enormous hole in a file": (
        "with open('x', 'wb') as f:\n    f.seek(10**12)\n    f.write(b'x')",
        "error",
        "[Errno 27]",
    ),
    "opens files without end": ("open('x', 'w')\nx = []\nwhile True: x.append(open('x'))", "error", "[Errno 24]"),
    "forks without end": (
        "import os\nfor _ in range(1000):\n    try: os.fork()\n    except OSError: last = 'non'\nprint(last)",
        "ok",
        "non",
    ),
    "starts threads without end": (
        """
        import _thread
        started = 0
        for _ in range(1000):
            try: started += _thread.start_new_thread(int, ()) > 0
            except Exception: pass
        print(started)
        """,
        "ok",
        "0",
    ),
}


def frame(kind: int, body: bytes, name: bytes = b"", length: int | None = None) -> bytes:
    """Return a message to the parent, true or forged: `length` is what it says of its body."""
    return bytes((kind, len(name))) + (len(body) if length is None else length).to_bytes(4, "big") + name + body


def call(arguments: bytes, name: bytes = b"echo", named: bytes = b"{}") -> bytes:
    """Return a call."""
    return frame(CALL, b'{"arguments":%s,"named":%s}' % (arguments, named), name)


def done(beyond: bytes = b"0", error: bytes = b"null") -> bytes:
    """Return the message that ends a program."""
    return frame(DONE, b'{"error":%s,"beyond":%s}' % (error, beyond))


# Message; what the result says; the child is killed.
FORGERIES = {
    "calls a function that it was not given": (call(b"[]", b"eval"), "qui n'a pas été donnée : 'eval'"),
    "calls an attribute of a function": (call(b"[]", b"echo.__globals__"), "qui n'a pas été donnée"),
    "calls what every object has": (call(b"[]", b"__class__"), "qui n'a pas été donnée"),
    "calls by no name": (call(b"[]", b""), "qui n'a pas été donnée : ''"),
    "calls by a name that is no UTF-8": (call(b"[]", b"\xff\xfe"), "qui n'a pas été donnée : '��'"),
    "calls by the longest name": (call(b"[]", b"e" * 255), "qui n'a pas été donnée : 'eee"),
    "calls with arguments that are none": (call(b"{}"), "« arguments » n'est pas ce qu'il doit être"),
    "calls with named arguments that are none": (call(b"[]", named=b"[]"), "« named » n'est pas ce qu'il doit être"),
    "names what is no call": (frame(PRINTED, b"x", b"echo"), "un message « printed » de 1 octets"),
    "sends a field too many": (frame(DONE, b'{"error":null,"beyond":0,"x":1}'), "sans ses champs, ou avec d'autres"),
    "sends a field too few": (frame(DONE, b'{"error":null}'), "sans ses champs, ou avec d'autres"),
    "sends no field": (frame(DONE, b"{}"), "sans ses champs, ou avec d'autres"),
    "sends a message of an unknown kind": (frame(4, b"{}"), "un genre inconnu : 4"),
    "sends a message of the last kind there can be": (frame(255, b"{}"), "un genre inconnu : 255"),
    "says again that it is ready": (frame(READY, b'{"walls":{}}'), "au milieu d'un programme"),
    "sends what is no JSON": (frame(DONE, b"\x80\x04K\x01."), "ce n'est pas du JSON"),
    "sends nothing": (frame(DONE, b""), "ce n'est pas du JSON"),
    "prints nothing": (frame(PRINTED, b""), "caractères imprimés"),
    "prints what is no UTF-8": (frame(PRINTED, b"\xff"), "can't decode byte 0xff"),
    "prints half a surrogate pair": (frame(PRINTED, b"\xed\xa0\x80"), "can't decode byte 0xed"),
    "prints more than may be printed": (frame(PRINTED, b"x" * 2_001), "plus de 2,000 caractères imprimés"),
    "prints more than a message may hold": (frame(PRINTED, b"", length=64_001), "« printed » de 64,001 octets"),
    "tells an error of megabytes": (frame(DONE, b"", length=10**7), "« done » de 10,000,000 octets"),
    "sends JSON that is no object": (frame(DONE, b"[1]"), "ce n'est pas un objet JSON"),
    "sends what is no UTF-8": (done(error=b'"\xff"'), "ce n'est pas du JSON"),
    "sends no number": (done(b"NaN"), "NaN n'est pas une valeur JSON"),
    "sends an infinite number": (done(b"1e999"), "inf n'est pas une valeur JSON"),
    "sends a truth for a number": (done(b"true"), "« beyond » n'est pas ce qu'il doit être"),
    "sends a fraction for a number": (done(b"1.5"), "« beyond » n'est pas ce qu'il doit être"),
    "sends a number of thousands of digits": (done(b"9" * 5000), "un nombre de plus de 32 chiffres"),
    "sends a fraction of thousands of digits": (call(b"[0.%s]" % (b"1" * 5000)), "un nombre de plus de 32 chiffres"),
    "sends an exponent of thousands of digits": (call(b"[1e%s]" % (b"1" * 5000)), "un nombre de plus de 32 chiffres"),
    "says that more was printed than can be": (done(b"9" * 25), "un nombre entier de plus de 64 bits"),
    "sends numbers chosen to have the same hash": (
        call(b"[%s]" % b",".join(b"%d" % (n * (2**61 - 1)) for n in range(3_000))),
        "un nombre entier de plus de 64 bits",
    ),
    "sends a field twice": (frame(DONE, b'{"error":null,"error":null,"beyond":0}'), "un nom y est deux fois"),
    "names an argument twice": (call(b"[]", named=b'{"value":1,"value":2}'), "un nom y est deux fois"),
    "sends lists in lists": (call(b"[" * 90 + b"]" * 90), "plus de 64 niveaux"),
    "sends lists beyond all depth": (call(b"[" * 90_000 + b"]" * 90_000), "plus de 64 niveaux"),
    "sends lists that do not end": (call(b"[" * 90_000), "des crochets ne sont pas fermés"),
    "sends ends of lists": (call(b"]" * 90_000), "des crochets ne sont pas fermés"),
    "hides depth behind a text": (call(b'["\\"]' + b"[" * 99 + b'",' + b"[" * 99 + b"]" * 100), "plus de 64 niveaux"),
    "sends millions of empty lists": (call(b"[" + b"[]," * 300_000 + b"0]"), "plus de 200,000 éléments"),
    "sends millions of empty texts": (call(b"[" + b'"",' * 300_000 + b"0]"), "plus de 200,000 éléments"),
    "sends half a surrogate pair": (call(rb'["a\ud800b"]'), "une moitié de caractère"),
    "sends two halves the wrong way round": (call(rb'["\uDFFF\uD800"]'), "une moitié de caractère"),
    "sends a line end in a text": (call(b'["a\nb"]'), "ce n'est pas du JSON"),
}
_CALLING, _ASKING, _GIVING_CODE = call(b"[]"), call(b'["' + b"x" * 900 + b'"]'), call(b'["print(1)"]')
_PRINTING = frame(PRINTED, b"x" * 900)
# Program; how it may end; what the result says.
FORGING = {
    "announces four gigabytes": (
        "connection.send(frame(2, b'', b'echo', 2**32 - 1))\necho()",
        "killed",
        "4,294,967,295 octets",
    ),
    "announces more than it sends": (
        "connection.send(frame(2, b'{}', b'echo', 10**6))\nwhile True: pass",
        "timeout",
        "arrêté",
    ),
    "announces less than it sends": (
        "connection.send(frame(3, b'{}', length=1))\necho()",
        "killed",
        "a contrefait un message",
    ),
    "sends half a message and waits": (
        "import time\nconnection.send(b'\\0\\0')\ntime.sleep(60)",
        "timeout",
        "arrêté",
    ),
    "sends random bytes": ("connection.sendall(os.urandom(10**5))\necho()", "killed timeout", "arrêté"),
    "says that less than nothing was printed": (f"connection.send({done(b'-5')!r})\necho()", "ok", ""),
    "sends prints without end": (
        f"m = {_PRINTING!r}\nwhile True: connection.sendall(m)",
        "killed",
        "plus de 2,000 caractères imprimés",
    ),
    "calls and goes on computing": (
        f"connection.send({_CALLING!r})\nwhile True: pass",
        "timeout",
        "arrêté",
    ),
    "never reads the answers to its calls": (
        f"m = {_ASKING!r}\nwhile True: connection.sendall(m)",
        "timeout",
        "arrêté",
    ),
    "takes an answer for a program": (
        f"""
        connection.send({_GIVING_CODE!r})
        runner.run(runner._channel.receive().get("value"))
        """,
        "ok error killed",
        "",
    ),
    "closes its channel": ("os.close(connection.fileno())\nwhile True: pass", "killed", "a fermé le canal"),
    "shuts its channel down": ("connection.shutdown(2)\nwhile True: pass", "error killed timeout", ""),
    "reads what is not there to be read": ("connection.recv(10**6)", "timeout", "arrêté"),
    "reads where there is no memory": ("C.string_at(0)", "killed", "s'est effondré (SIGSEGV)"),
    "maps more memory than there is": ("C.create_string_buffer(10**11)\nprint(GOT)", "error", "MemoryError"),
    "calls by the numbers of 32 bits": ("print(kernel._libc.syscall(C.c_long(0x40000029), 2, 1, 0))", "ok killed", ""),
    "forks without end below Python": (
        "print(sum(kernel._libc.fork() < 0 for _ in range(1000)))",
        "ok",
        "1000",
    ),
    "breaks the child's own loop": (
        "runner.run = runner._channel.send = None\nsys._getframe().f_back.f_locals.clear()\nraise BaseException",
        "error killed",
        "",
    ),
}
