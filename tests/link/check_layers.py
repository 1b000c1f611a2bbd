"""Checks the #include lines of the rooms against the dependencies that they declare.

Usage: check_layers.py SOURCE_DIR LAYERS      (LAYERS: lines of `room folder depends...`)
       check_layers.py --self-test            (plants faults and must find each)

- A room includes itself and the rooms that it declares, directly or through them.
- Only src/os includes the headers of kernel calls and of the loader.
- Only src/engine includes version_config.h.
- cli/ and examples/ include public headers only, and nothing by a path with `..`.
"""
import pathlib
import re
import sys
import tempfile

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
SOURCES = {'.cpp', '.hpp', '.h'}
# Plain data types are free to use: they do nothing by themselves.
KERNEL = re.compile(r'(sys/(?!types\.h|uio\.h)\w+|netinet/\w+|arpa/inet|netdb|dlfcn|unistd|fcntl'
                    r'|poll|pthread|sched|signal|liburing|ifaddrs|net/if|linux/\w+)(\.h)?$')


def read_layers(text):
    """Returns {room: folder} and {room: every room it may include}."""
    folders, declared = {}, {}
    for line in filter(None, map(str.strip, text.splitlines())):
        room, folder, *depends = line.split()
        folders[room], declared[room] = folder, depends

    def closure(room):
        reached = {room}
        for dependency in declared[room]:
            reached |= closure(dependency)
        return reached
    return folders, {room: closure(room) for room in declared}


def owner(path, folders):
    """The room whose folder is the longest prefix of `path`, or None."""
    best = None
    for room, folder in folders.items():
        if path.startswith(folder + '/') and (best is None or len(folder) > len(folders[best])):
            best = room
    return best


def includes(file):
    for number, line in enumerate(file.read_text(errors='replace').splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1] == '"', match[2]


def files_below(folder):
    return sorted(p for p in folder.rglob('*') if p.suffix in SOURCES) if folder.is_dir() else []


def faults(root, layers):
    folders, allowed = read_layers(layers)
    for file in files_below(root / 'src'):
        name = file.relative_to(root).as_posix()
        room = owner(name, folders)
        if room is None:
            yield f'{name}: in no room'
            continue
        for number, quoted, header in includes(file):
            where = f'{name}:{number}'
            if header.startswith('..'):
                yield f'{where}: includes {header}; name headers from src/'
            elif quoted and header == 'version_config.h' and room != 'engine':
                yield f'{where}: version_config.h is for engine alone'
            elif quoted and '/' in header:
                other = owner('src/' + header, folders)
                if other is None:
                    yield f'{where}: {header} belongs to no room'
                elif other not in allowed[room]:
                    yield f'{where}: {room} includes {header}, but does not depend on {other}'
            elif not quoted and KERNEL.match(header) and room != 'os':
                yield f'{where}: <{header}> is for src/os alone'
    for face in ('cli', 'examples'):
        for file in files_below(root / face):
            for number, quoted, header in includes(file):
                if quoted and '..' in header.split('/'):
                    yield f'{file.relative_to(root).as_posix()}:{number}: reaches out by {header}'
    for file in files_below(root / 'include'):
        for number, quoted, header in includes(file):
            if quoted:
                yield (f'{file.relative_to(root).as_posix()}:{number}: "{header}": '
                       'public headers include <...> only')


def self_test():
    layers = 'base src/base\nos src/os base\nmemory src/memory base\npath src/path os memory\n' \
             'path_tcp src/path/tcp path\npath_null src/path/null path\n'
    cases = [
        ('src/base/a.h', '#include <string>\n#include "base/b.h"\n', 0),
        ('src/base/a.h', '#include "memory/b.h"\n', 1),
        ('src/path/tcp/a.cpp', '#include "path/path.h"\n#include "base/b.h"\n', 0),
        ('src/path/tcp/a.cpp', '#include "path/null/null.h"\n', 1),
        ('src/path/path.h', '#include "path/tcp/tcp.h"\n', 1),
        ('src/memory/a.cpp', '#include "os/file.h"\n', 1),
        ('src/memory/a.cpp', '#include <unistd.h>\n', 1),
        ('src/path/a.cpp', '#include <sys/socket.h>\n#include <sys/uio.h>\n', 1),
        ('src/os/a.cpp', '#include <sys/socket.h>\n', 0),
        ('src/memory/a.cpp', '#include "../os/file.h"\n', 1),
        ('src/os/a.cpp', '#include "version_config.h"\n', 1),
        ('src/stray.cpp', '\n', 1),
        ('cli/main.cpp', '#include "../src/base/a.h"\n', 1),
        ('cli/main.cpp', '#include "args.h"\n#include <unistd.h>\n', 0),
        ('include/wherry/a.hpp', '#include "base/a.h"\n', 1),
    ]
    for name, text, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, name)
            file.parent.mkdir(parents=True)
            file.write_text(text)
            found = list(faults(pathlib.Path(folder), layers))
            assert len(found) == expected, (name, text, found)


def main():
    if sys.argv[1:] == ['--self-test']:
        self_test()
        return 0
    root, layers = map(pathlib.Path, sys.argv[1:])
    found = list(faults(root, layers.read_text()))
    print('\n'.join(found) or 'layers: in order')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
