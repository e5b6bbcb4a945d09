# SPDX-License-Identifier: Apache-2.0
"""The files that the checks look at, and their text without comments and strings."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPP_SUFFIXES = {".cc", ".h", ".c", ".S"}
FOLDERS_OUTSIDE_SRC = ("abi", "runtime")


def tracked_files():
    """Every file of the project that git knows or would add, as paths relative to ROOT."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others",
               "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, check=False)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:  # A source archive has no git.
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
                 if path.relative_to(ROOT).parts[0] not in ("build", ".git")]
    return sorted(Path(name) for name in names if (ROOT / name).is_file())


def cpp_files():
    return [path for path in tracked_files() if path.suffix in CPP_SUFFIXES]


def folder_of(path):
    """The stage a file belongs to ('plan', 'abi', ...), or None outside of all stages."""
    if "fixtures" in path.parts:  # Programs that tests read, not code of Clew.
        return None
    if path.parts[0] == "src" and len(path.parts) > 2:
        return path.parts[1]
    return path.parts[0] if path.parts[0] in FOLDERS_OUTSIDE_SRC else None


_NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'", re.DOTALL)


def code_only(text):
    """`text` with comments and literals blanked, so that line and column stay what they were."""
    return _NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found.group(0)), text)


class Report:
    """Collects findings; `exit_status` prints them as `file:line: error: message`."""

    def __init__(self):
        self.findings = []

    def add(self, path, line, message):
        self.findings.append((str(path), line, message))

    def exit_status(self, what):
        for path, line, message in sorted(set(self.findings)):
            print(f"{path}:{line}: error: {message}")
        if not self.findings:
            print(f"{what}: no finding")
        return 1 if self.findings else 0
