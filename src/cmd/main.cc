// SPDX-License-Identifier: Apache-2.0
// The `clew` command: picks the verb.
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"
#include "base/nearest.h"
#include "cmd/console.h"
#include "cmd/named_verb.h"
#include "cmd/verbs.h"

namespace clew::cmd {
namespace {

struct Verb {
  std::string_view name;
  int (*run)(int argument_count, const char* const* arguments);
  std::string_view summary;
};

constexpr std::array<Verb, 19> kVerbs = {{
    {"run", run_verb, "answer a query about running processes"},
    {"dtrace", dtrace_verb, "run D scripts, as DTrace does"},
    {"record", record_verb, "have a command or process record what it does, for its first crash"},
    {"snap", snap_verb, "take what a recorded process does now"},
    {"show", show_verb, "show what led to the crash, or to that moment"},
    {"list", list_verb, "show what can be traced"},
    {"explain", explain_verb, "show how a query would run"},
    {"ui", ui_verb, "ask and look in a browser"},
    {"node", node_verb, "run queries of a cluster on this machine"},
    {"root", root_verb, "own the answers of a cluster's queries"},
    {"key", key_verb, "make a key to sign queries of a cluster with"},
    {"results", results_verb, "show answers of a cluster later"},
    {"cluster", cluster_verb, "try a cluster of five machines on this one"},
    {"examples", examples_verb, "find a query or script to start from"},
    {"doctor", doctor_verb, "check this machine, and a process"},
    {"ps", ps_verb, "show which processes are traced"},
    {"detach", detach_verb, "remove probes that a killed session left"},
    {"log", log_verb, "show who traced what"},
    {"bug-report", bug_report_verb, "write a file for a bug report"},
}};

// `named`: those that are queries and scripts.
void print_usage(std::FILE* file, const Expected<Verbs>& named) {
  fmt::print(file, "usage: clew VERB [ARGUMENT...]\n\n");
  for (const Verb& verb : kVerbs) {
    fmt::print(file, "  {:<8} {}\n", verb.name, verb.summary);
  }
  fmt::print(file, "\nwhat is going on (clew VERB --show prints the query or script):\n\n");
  if (!named) fmt::print(file, "  {}\n", named.error().message);
  const Verbs verbs = named.value_or(Verbs());
  for (const NamedVerb& verb : verbs.verbs)
    fmt::print(file, "  {:<8} {}\n", verb.name, verb.problem ? verb.problem->message : verb.help);
  for (const Verbs::FolderProblem& problem : verbs.problems)
    fmt::print(file, "  {}\n", problem.error.message);
  fmt::print(file, "\nclew VERB --help has the options; man clew has everything.\n");
}

// A verb that is no code of ours, or none at all.
int run_named(std::string_view name, int argument_count, const char* const* arguments) {
  const Expected<Verbs> named = named_verbs(argument_count, arguments);
  if (!named) return report(named.error());
  std::vector<std::string_view> names;
  for (const NamedVerb& verb : named->verbs) {
    if (verb.name == name) return named_verb(verb, argument_count - 1, arguments + 1);
    names.emplace_back(verb.name);
  }
  for (const Verb& verb : kVerbs)
    names.emplace_back(verb.name);
  for (const Verbs::FolderProblem& problem : named->problems)
    (void)report(problem.error);
  const std::string near = nearest_name(name, names);
  fmt::print(stderr, "clew: error: no verb '{}'{}\n", name,
             near.empty() ? "; see clew --help" : did_you_mean(near));
  return kExitUsage;
}

// Who runs us with more rights than their own does not name a file that we write: secure_getenv(3)
// gives nothing then.
Expected<void> open_log_file() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread.
  const char* const path = secure_getenv("CLEW_LOG");
  return path == nullptr || *path == '\0' ? Expected<void>() : log_to_file(path);
}

int dispatch(int argument_count, const char* const* arguments) {
  if (argument_count < 2) {
    print_usage(stderr, named_verbs(argument_count, arguments));
    return kExitUsage;
  }
  const std::string_view name = arguments[1];
  for (const Verb& verb : kVerbs) {
    if (verb.name != name) continue;
    if (const Expected<void> opened = open_log_file(); !opened) return report(opened.error());
    return verb.run(argument_count - 1, arguments + 1);
  }
  if (name == "--help" || name == "-h" || name == "help") {
    print_usage(stdout, named_verbs(argument_count, arguments));
    return kExitAnswered;
  }
  if (name == "--version") {
    fmt::print("clew {}\n", CLEW_VERSION);
    return kExitAnswered;
  }
  if (const Expected<void> opened = open_log_file(); !opened) return report(opened.error());
  return run_named(name, argument_count, arguments);
}

// Descriptors that we were started without are taken, or else the next file or BPF object that we
// open would get what is meant for the terminal. They stay as useless as they were (EBADF), and
// closed for the commands that we start.
void take_standard_descriptors() {
  while (true) {
    const int descriptor = open("/", O_PATH | O_CLOEXEC);
    if (descriptor <= STDERR_FILENO && descriptor >= 0) continue;
    if (descriptor >= 0) (void)close(descriptor);
    return;
  }
}

// A file that would grow over its limit (ulimit -f) is an error of the call, EFBIG. The signal's
// default would end a session with its probes in a process. Commands are started with no signal
// blocked.
void take_file_size_signal() {
  sigset_t signals;
  (void)sigemptyset(&signals);
  (void)sigaddset(&signals, SIGXFSZ);
  (void)pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace
}  // namespace clew::cmd

int main(int argument_count, char** arguments) {
  clew::cmd::take_standard_descriptors();
  clew::cmd::take_file_size_signal();
  try {
    return clew::cmd::dispatch(argument_count, arguments);
  } catch (const std::exception& problem) {  // std::bad_alloc, and what libraries throw.
    (void)std::fprintf(stderr, "clew: error: %s\n", problem.what());
    return clew::cmd::kExitError;
  }
}
