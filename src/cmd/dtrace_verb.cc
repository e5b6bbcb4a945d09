// SPDX-License-Identifier: Apache-2.0
// clew dtrace: the command line of DTrace. Its flags are single letters that may be joined and may
// stand between arguments, so it is read by getopt(3) and not as the other verbs' are.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <getopt.h>

#include "cmd/console.h"
#include "cmd/duration.h"
#include "cmd/installed.h"
#include "cmd/percent.h"
#include "cmd/verbs.h"
#include "engine/dtrace/request.h"

namespace clew::cmd {
namespace {

using engine::DtraceRequest;
using Form = engine::DtraceProgram::Form;

// No letter is free for them.
constexpr int kExtensionFlag = 256;
constexpr int kFuelFlag = 257;
constexpr int kJsonFlag = 258;
constexpr int kFormatFlag = 259;
constexpr int kOverheadFlag = 260;
constexpr int kIdleFlag = 261;
constexpr int kNoDestructiveFlag = 262;
constexpr std::array kLongFlags = {
    option{"ext", required_argument, nullptr, kExtensionFlag},
    option{"fuel", required_argument, nullptr, kFuelFlag},
    option{"json", no_argument, nullptr, kJsonFlag},
    option{"idle", required_argument, nullptr, kIdleFlag},
    option{"max-overhead", required_argument, nullptr, kOverheadFlag},
    option{"no-destructive", no_argument, nullptr, kNoDestructiveFlag},
    option{"format", required_argument, nullptr, kFormatFlag},
    option{nullptr, 0, nullptr, 0}};
constexpr const char* kFlags = "+:aAb:c:CD:ef:FGhHi:I:lL:m:n:o:p:P:qs:SU:vVwx:X:Z3:6:";

void print_usage() {
  fmt::print(stderr,
             "usage: clew dtrace [-CeFGhHlqSvVwZ] [-b bufsz] [-c cmd] [-D name[=def]] [-I path]\n"
             "           [-L path] [-o output] [-p pid] [-s script] [-U name] [-x opt[=val]]\n"
             "           [--ext file] [--fuel instructions] [--format name | --json]\n"
             "           [--max-overhead percent] [--idle time] [--no-destructive]\n"
             "           [-P provider [[predicate] action]]\n"
             "           [-m [provider:]module [[predicate] action]]\n"
             "           [-f [[provider:]module:]func [[predicate] action]]\n"
             "           [-n [[[provider:]module:]func:]name [[predicate] action]]\n"
             "           [-i probe-id [[predicate] action]] [args ...]\n\n"
             "man clew-dtrace has the language, the providers and what differs.\n");
}

void print_help() {
  fmt::print(
      "usage: clew dtrace [FLAG...] [ARGUMENT...]\n\n"
      "programs; PROGRAM is a probe description, perhaps with a predicate and a body:\n"
      "  -s        a script; the rest of the line are its arguments\n"
      "  -n        by probe name: 'syscall::read:entry {{ @[execname] = count(); }}'\n"
      "  -f        by function\n"
      "  -m        by module\n"
      "  -P        by provider\n"
      "  -i        by probe id\n"
      "what to trace:\n"
      "  -c        start this command, and end when it ends\n"
      "  -p        this process; $target is its pid\n"
      "  -w        allow destructive actions\n"
      "  --no-destructive  refuse them, also where a program has #pragma D option destructive\n"
      "  -Z        allow descriptions that match nothing\n"
      "  --ext     functions in C that the programs may call: FILE.c, FILE.o, or a name of the\n"
      "            library\n"
      "  --fuel    instructions that a firing may spend in these; 100000 otherwise\n"
      "  --max-overhead  what probes may take of each process's CPU time, like 3%: the\n"
      "            functions that take most are taken out first, and named\n"
      "  --idle    end when nothing was recorded, or nobody has read the output, for this\n"
      "            time: 10m\n"
      "how to print:\n"
      "  -q        only what the program prints\n"
      "  -F        indent by entry and return\n"
      "  --json    records and aggregations as lines of JSON; implies -q\n"
      "  --format  stream or sqlite: records and aggregations as tables; csv, chart (bars),\n"
      "            folded or svg (a flame graph): aggregations alone; json; implies -q.\n"
      "            -o FILE.sqlite, .folded and .svg say so, too\n"
      "  -o        append to this file\n"
      "  -x        set an option: -x NAME or -x NAME=VALUE\n"
      "  -b        size of the buffer: -x bufsize=SIZE\n"
      "instead of tracing:\n"
      "  -l        list the probes\n"
      "  -v        with -l, also what they give\n"
      "  -e        compile only\n"
      "  -S        show the programs' instructions\n"
      "  -V        show the version\n"
      "to build a program with probes of its own:\n"
      "  -h        (with others) the header of the providers of -s\n"
      "  -G        the object to link with: -G -s probes.d -o probes.o OBJECT...\n"
      "the C preprocessor:\n"
      "  -C        run it over the programs\n"
      "  -D        define a name\n"
      "  -U        undefine a name\n"
      "  -I        look for included files there\n"
      "  -H        show which files are included\n"
      "  -L        look for D libraries there\n"
      "  -h,--help alone: show this\n\n"
      "man clew-dtrace has the language, the providers and what differs.\n");
}

class Reader {
 public:
  Reader(int argument_count, const char* const* arguments)
      : argument_count_(argument_count), arguments_(const_cast<char* const*>(arguments)) {}

  // Nothing: usage was printed.
  bool read();
  [[nodiscard]] DtraceRequest& request() { return request_; }
  [[nodiscard]] bool wants_version() const { return wants_version_; }

 private:
  // The letter, or the word of a long one.
  [[nodiscard]] std::string wrong_flag() const;
  bool take(int flag);
  bool take_switch(int flag);
  bool take_preprocessor(int flag);
  bool take_option();
  void ask_for(std::string format) {
    set_option("format", std::move(format));
    set_option("quiet", "");
  }
  bool take_pid();
  bool take_fuel();
  bool take_overhead();
  bool take_idle();
  bool take_output();
  void add_program(Form form, bool is_file) {
    request_.programs.push_back({form, is_file, optarg});
  }
  void add_program(int flag);
  void set_option(std::string name, std::string value) {
    request_.options.emplace_back(std::move(name), std::move(value));
  }

  int argument_count_;
  char* const* arguments_;
  DtraceRequest request_;
  bool wants_version_ = false;
};

bool Reader::read() {
  optind = 1;
  opterr = 0;
  while (optind < argument_count_) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): this command has one thread.
    const int flag = getopt_long(argument_count_, arguments_, kFlags, kLongFlags.data(), nullptr);
    if (flag == -1) {
      if (optind >= argument_count_) break;
      request_.arguments.emplace_back(arguments_[optind++]);
      continue;
    }
    if (flag == ':' || flag == '?') {
      fmt::print(stderr, "dtrace: {} -- '{}'\n",
                 flag == ':' ? "option requires an argument" : "invalid option", wrong_flag());
      return false;
    }
    if (!take(flag)) return false;
  }
  return true;
}

std::string Reader::wrong_flag() const {
  const bool is_letter = optopt > 0 && optopt < kExtensionFlag;
  if (is_letter) return std::string(1, static_cast<char>(optopt));
  const std::string_view word = arguments_[optind - 1];
  return std::string(word.substr(std::min(word.size(), word.find_first_not_of('-'))));
}

bool Reader::take_preprocessor(int flag) {
  request_.preprocessor_arguments.push_back(fmt::format("-{}", static_cast<char>(flag)));
  if (flag != 'H') request_.preprocessor_arguments.back() += optarg;
  return true;
}

bool Reader::take_option() {
  const std::string_view text = optarg;
  const size_t equals = text.find('=');
  set_option(std::string(text.substr(0, equals)),
             equals == std::string_view::npos ? "" : std::string(text.substr(equals + 1)));
  return true;
}

bool Reader::take_pid() {
  pid_t pid = 0;
  const std::string_view text = optarg;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || pid <= 0) {
    fmt::print(stderr, "dtrace: invalid pid: {}\n", text);
    return false;
  }
  request_.pids.push_back(pid);
  return true;
}

bool Reader::take_fuel() {
  const std::string_view text = optarg;
  uint64_t& fuel = request_.extension_fuel;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), fuel);
  const bool is_number = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  if (is_number && fuel >= extension::kFuelMin && fuel <= extension::kFuelMax) return true;
  fmt::print(stderr, "dtrace: --fuel takes a number from {} to {}, not: {}\n", extension::kFuelMin,
             extension::kFuelMax, text);
  return false;
}

bool Reader::take_overhead() {
  const auto share = parse_percent(optarg);
  if (share) {
    request_.max_overhead = *share;
    return true;
  }
  fmt::print(stderr, "dtrace: --max-overhead: {}\n", share.error().message);
  return false;
}

bool Reader::take_idle() {
  const auto time = parse_duration(optarg);
  if (time) {
    request_.idle_ns = *time;
    return true;
  }
  fmt::print(stderr, "dtrace: --idle: {}\n", time.error().message);
  return false;
}

bool Reader::take_output() {
  if (request_.output_path.empty()) {
    request_.output_path = optarg;
    return true;
  }
  fmt::print(stderr, "dtrace: -o names the one file for all output, not two: {}, {}\n",
             request_.output_path, optarg);
  return false;
}

void Reader::add_program(int flag) {
  switch (flag) {
    case 'P':
      return add_program(Form::Provider, false);
    case 'm':
      return add_program(Form::Module, false);
    case 'f':
      return add_program(Form::Function, false);
    case 'n':
      return add_program(Form::Name, false);
    case 'i':
      return add_program(Form::Id, false);
    default:
      return add_program(Form::File, true);
  }
}

bool Reader::take(int flag) {
  const auto run = [](auto&& effect) {
    effect();
    return true;
  };
  switch (flag) {
    case 'D':
    case 'U':
    case 'I':
    case 'H':
      return take_preprocessor(flag);
    case 'p':
      return take_pid();
    case kExtensionFlag:
      return run([&] { request_.extensions.emplace_back(optarg); });
    case kFuelFlag:
      return take_fuel();
    case kIdleFlag:
      return take_idle();
    case kOverheadFlag:
      return take_overhead();
    case kNoDestructiveFlag:
      return run([&] { request_.forbids_destructive = true; });
    case kJsonFlag:
      return run([&] { ask_for("json"); });
    case kFormatFlag:
      return run([&] { ask_for(optarg); });
    case 'c':
      return run([&] { request_.commands.emplace_back(optarg); });
    case 'o':
      return take_output();
    case 'G':
      return run([&] { request_.product = DtraceRequest::Product::Object; });
    case 'h':
      return run([&] { request_.product = DtraceRequest::Product::Header; });
    case 'b':
      return run([&] { set_option("bufsize", optarg); });
    case 'L':
      return run([&] { set_option("libdir", optarg); });
    case 'X':  // How far C is a standard one.
      return run([&] { set_option("stdc", optarg); });
    case 'x':
      return take_option();
    default:
      return take_switch(flag);
  }
}

// Those without an argument, and the programs.
bool Reader::take_switch(int flag) {
  const auto run = [](auto&& effect) {
    effect();
    return true;
  };
  switch (flag) {
    case 'P':
    case 'm':
    case 'f':
    case 'n':
    case 'i':
    case 's':
      return run([&] { add_program(flag); });
    case 'C':
      return run([&] { request_.preprocess = true; });
    case 'l':
      return run([&] { request_.is_list = true; });
    case 'v':
      return run([&] { request_.is_verbose = true; });
    case 'e':
      return run([&] { request_.compile_only = true; });
    case 'S':
      return run([&] { request_.disassemble = true; });
    case 'V':
      return run([&] { wants_version_ = true; });
    case 'q':
      return run([&] { set_option("quiet", ""); });
    case 'F':
      return run([&] { set_option("flowindent", ""); });
    case 'w':
      return run([&] { set_option("destructive", ""); });
    case 'Z':
      return run([&] { set_option("zdefs", ""); });
    case '3':  // -32, -64: one data model.
    case '6':
      return true;
    default:
      fmt::print(stderr, "dtrace: -{} is not supported\n", static_cast<char>(flag));
      return false;
  }
}

}  // namespace

int dtrace_verb(int argument_count, const char* const* arguments) {
  const std::string_view first = argument_count > 1 ? arguments[1] : "";
  if (first == "--help" || (first == "-h" && argument_count == 2)) {
    print_help();
    return kExitAnswered;
  }
  Reader reader(argument_count, arguments);
  if (!reader.read()) {
    print_usage();
    return kExitUsage;
  }
  DtraceRequest& request = reader.request();
  request.extension_folder = extension_folder();
  if (reader.wants_version()) {
    fmt::print("dtrace: Clew {}, Sun D 2.0\n", CLEW_VERSION);
    return kExitAnswered;
  }
  if (request.programs.empty() && !request.is_list) {
    print_usage();
    return kExitUsage;
  }
  const Expected<FileDescriptor> stop = signals_as_descriptor(ReaderGone::Ends);
  if (!stop) return report(stop.error());
  return engine::run_dtrace(request, stop->get());
}

}  // namespace clew::cmd
