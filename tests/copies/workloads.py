# SPDX-License-Identifier: Apache-2.0
"""Programs with something to do, for whoever runs them twice and compares: each is a command in a
folder of its own, whose outputs depend on nothing but its inputs."""

import os
import random
import shutil
import subprocess
from pathlib import Path

LUA = """
local words, sum = {}, 0
for i = 1, N * 40000 do
  local key = string.format("k%d", i % 1000)
  words[key] = (words[key] or 0) + #key
  sum = sum + (i * 7919) % 1013
end
local sorted = {}
for key, value in pairs(words) do sorted[#sorted + 1] = key .. value end
table.sort(sorted)
local function deep(n) if n == 0 then error("deep") end return deep(n - 1) + 1 end
print(sum, #sorted, sorted[1], pcall(deep, 100), select("#", coroutine.wrap(function(...)
  return ... end)(1, 2, 3)))
print(("x"):rep(30):gsub("x+", "%0y"), string.pack(">I4", 7):byte(1, -1))
"""

PYTHON = """
import collections, json, re, zlib
words = collections.Counter(re.findall(r"\\w+", open("text").read()[:N * 20000]))
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
class Odd(Exception):
    pass
def odd(n):
    if n % 2:
        raise Odd(n)
    return n
caught = 0
for i in range(N * 500):
    try:
        odd(i)
    except Odd:
        caught += 1
print(words.most_common(20), fib(12 + min(N, 14)), caught)
print(zlib.crc32(json.dumps(words, sort_keys=True).encode()))
print(sum(x * y % 7 for x in range(N * 200) for y in range(100)), sorted("copies"), 2 ** 200 // 7)
"""

PERL = """
my (%words, $sum);
open(my $in, '<', 'text'); local $/; my $text = substr(<$in>, 0, N * 30000);
$words{lc $1}++ while $text =~ /(\\w+)/g;
$sum += $_ * length($_) % 13 for 1 .. N * 60000;
print join(',', map {"$_$words{$_}"} (sort {$words{$b} <=> $words{$a} || $a cmp $b} keys %words)
  [0 .. 20]), " $sum\\n";
eval { die {code => 7} }; print $@->{code}, "\\n"; printf "%s %.3f\\n", scalar reverse('copy'), 2/7;
(my $t = $text) =~ tr/a-z/b-za/; print unpack('%32C*', $t), "\\n";
"""

AWK = """{ for (i = 1; i <= NF; i++) count[length($i)]++; total += NF
  gsub(/a[b-m]/, "<&>"); n += length }
END { for (i = 1; i < 14; i++) printf "%d %d\\n", i, count[i]
  print total, n, sprintf("%.4f", log(total)) }
"""

SQL = """
create table a(id integer primary key, name text, value real);
create index a_name on a(name);
with recursive n(i) as (select 1 union all select i + 1 from n where i < N * 2000)
  insert into a select i, printf('n%05d', i * 7919 % 10007), i * 1.5 from n;
select count(*), sum(value), max(name) from a where name like 'n01%';
select id % 13 as k, count(distinct name), min(name) from a group by k order by 2, 1 desc;
select a.name, b.id from a join a b on a.id = b.id * 2 order by 1 limit 5;
select json_extract('{"x":[1,{"y":"z"}]}', '$.x[1].y'), hex(zeroblob(2)), date(0, 'unixepoch');
update a set value = -value where id % 3 = 0; delete from a where id % 5 = 0;
select sum(value), avg(length(name)) from a; pragma integrity_check; select nothing;
"""

C = """
struct node { struct node *left, *right; int key; double weight; };
static int depth(const struct node *n) {
  if (!n) return 0;
  int l = depth(n->left), r = depth(n->right);
  return 1 + (l > r ? l : r);
}
#define FUNCTION(n) int f##n(int x, struct node *t) { \\
  switch (x) { case 0: return n; case 1: return depth(t); case 2: return t->key * n; \\
    case 3: return (int)(t->weight * n); case 4: return x / (n + 1); default: break; } \\
  for (int i = 0; i < x; i++) { \\
    t->key += i * n; \\
    if (t->key % 7 == 3) t = t->left ? t->left : t; \\
  } \\
  return t->key ^ n; }
"""

POV = """#version 3.7; camera { location <0,2,-5> look_at 0 } light_source { <3,5,-4> 1 }
plane { y, -1 pigment { checker rgb 1 rgb 0.3 } } sphere { 0, 1 pigment { rgb <1,0.4,0.2> }
finish { phong 0.8 reflection 0.3 } } torus { 1.5, 0.2 pigment { bozo } }
"""

PS = """%!PS
/Helvetica findfont 20 scalefont setfont 0 1 60 { /i exch def gsave i 8 mul 200 translate
i 6 mul rotate 0 0 moveto (copies) show i 60 div setgray 0 0 40 0 i 6 mul arc stroke grestore } for
showpage
"""


def text_of(size):
    """Words as in a language, by a fixed seed."""
    source = random.Random(1)
    words = ["".join(source.choice("etaoinshrdlucmfw") for _ in range(source.randint(1, 9)))
             for _ in range(3000)]
    made = []
    while size > 0:
        line = " ".join(words[min(int(source.expovariate(0.002)), 2999)] for _ in range(11))
        made.append(line)
        size -= len(line) + 1
    return "\n".join(made) + "\n"


def formula(scale):
    """A satisfiable one in CNF, near where that is hard."""
    source, count = random.Random(2), 80 + 20 * min(scale, 8)
    clauses = int(count * 4.15)
    lines = [f"p cnf {count} {clauses}"]
    for _ in range(clauses):
        chosen = source.sample(range(1, count + 1), 3)
        lines.append(" ".join(str(it * source.choice((1, -1))) for it in chosen) + " 0")
    return "\n".join(lines) + "\n"


def graph(scale):
    source = random.Random(3)
    edges = [f"  n{source.randrange(25 * scale)} -> n{source.randrange(25 * scale)};"
             for _ in range(30 * scale)]
    return "digraph g {\n" + "\n".join(edges) + "\n}\n"


def found(program):
    """Debian's, not one that something else put first in the path."""
    for folder in ("/usr/bin", "/usr/sbin", "/bin", "/usr/games"):
        if os.access(f"{folder}/{program}", os.X_OK):
            return f"{folder}/{program}"
    return None


def cc1():
    gcc = found("gcc-12") or found("gcc")
    if gcc is None:
        return None
    path = subprocess.run([gcc, "-print-prog-name=cc1"], capture_output=True, text=True,
                          check=False).stdout.strip()
    return path if path.startswith("/") else None


class Workload:
    """`large`: its code takes seconds to look at. `stdout`: nothing of it tells the time."""

    def __init__(self, name, program, arguments, stdin=None, large=False, stdout=True):
        self.name, self.program, self.arguments = name, program, arguments
        self.stdin, self.large, self.stdout = stdin, large, stdout

    @property
    def command(self):
        """None when it is not installed."""
        path = cc1() if self.program == "cc1" else found(self.program)
        return path and [path, *self.arguments]


def workloads():
    made = [
        Workload("gzip", "gzip", ["-6", "-c", "text"]),
        Workload("gunzip", "gzip", ["-d", "-c", "text.gz"]),
        Workload("bzip2", "bzip2", ["-c", "text"]),
        Workload("bunzip2", "bzip2", ["-d", "-c", "text.bz2"]),
        Workload("xz", "xz", ["-2", "-T1", "-c", "text"]),
        Workload("xz -T2", "xz", ["-1", "-T2", "--block-size=100000", "-c", "text"]),
        Workload("unxz", "xz", ["-d", "-c", "text.xz"]),
        Workload("zstd", "zstd", ["-q", "-9", "-c", "text"]),
        Workload("zstd -T2", "zstd", ["-q", "-3", "-T2", "-B1048576", "-c", "text"]),
        Workload("lz4", "lz4", ["-q", "-9", "-c", "text"]),
        Workload("lua5.4", "lua5.4", ["work.lua"]),
        Workload("mawk", "mawk", ["-f", "work.awk", "text", "text"]),
        Workload("bc", "bc", ["-l"], stdin="work.bc"),
        Workload("jq", "jq", ["-S", ".[] | select(.a % 7 == 3) | {a, b: (.b | ascii_upcase), c: "
                              "(.c | add)}", "work.json"]),
        Workload("sqlite3", "sqlite3", [":memory:"], stdin="work.sql"),
        Workload("perl", "perl", ["work.pl"]),
        Workload("python3.11", "python3.11", ["-I", "-S", "work.py"]),
        Workload("minisat", "minisat", ["-verb=0", "work.cnf", "answer"]),
        Workload("dot", "dot", ["-Tplain", "work.dot"]),
        Workload("cc1 -fsyntax-only", "cc1", ["-quiet", "-fsyntax-only", "work.c"], large=True),
        Workload("cc1 -O2", "cc1", ["-quiet", "-O2", "work.c", "-o", "work.s"], large=True),
        Workload("openssl", "openssl", ["dgst", "-sha256", *["text"] * 20], large=True),
        Workload("gs", "gs", ["-q", "-dNOPAUSE", "-dBATCH", "-dSAFER", "-sDEVICE=pbmraw", "-r72",
                              "-sOutputFile=page.pbm", "work.ps"], large=True),
        Workload("gp", "gp", ["-q", "-f"], stdin="work.gp", large=True),
        # Its picture differs from run to run: how it ends is compared.
        Workload("povray", "povray", ["work.pov", "-F", "-D", "+W80", "+H60", "+WT1", "-GA"],
                 large=True, stdout=False),
    ]
    made.append(Workload("stockfish", "stockfish", ["bench", "16", "1", "8"], large=True,
                         stdout=False))
    for absent in ("z3", "cvc4", "exiv2"):
        made.append(Workload(absent, absent, ["--version"], large=True))
    return made


def fill(folder, scale):
    """All inputs. At scale 1 a program works for some tenths of a second at most."""
    size = 400_000 * scale
    text = text_of(size)
    number = str(scale)
    files = {
        "text": text, "work.lua": LUA.replace("N ", number + " "),
        "work.py": PYTHON.replace("N *", number + " *").replace("min(N", "min(" + number),
        "work.pl": PERL.replace("N *", number + " *"), "work.awk": AWK,
        "work.bc": f"scale = {60 * scale}\n4 * a(1)\ne(1)\nfor (i = 0; i < {200 * scale}; ++i) "
                   "s += i ^ 3 / 7\ns\nquit\n",
        "work.json": "[" + ",\n".join(f'{{"a": {i}, "b": "name{i * 7919 % 997}", "c": [{i}, 2.5, '
                                      f"{i % 13}]}}" for i in range(3000 * scale)) + "]\n",
        "work.sql": SQL.replace("N *", number + " *"), "work.cnf": formula(scale),
        "work.dot": graph(scale), "work.ps": PS, "work.pov": POV,
        "work.c": C + "".join(f"FUNCTION({i})\n" for i in range(60 * scale)),
        "work.gp": f"print(factor(2^{100 + 10 * min(scale, 4)}+1));\n"
                   f"print(sum(i=1,{100000 * scale},i^2%17));\n",
    }
    for name, content in files.items():
        (Path(folder) / name).write_text(content)
    for program, suffix in (("gzip", "gz"), ("bzip2", "bz2"), ("xz", "xz")):
        if found(program):
            arguments = ["-n"] if program == "gzip" else []
            with (Path(folder) / f"text.{suffix}").open("wb") as output:
                subprocess.run([found(program), *arguments, "-c", str(Path(folder) / "text")],
                               stdout=output, check=True)


def copy_of(folder, place):
    shutil.copytree(folder, place)
    return place
