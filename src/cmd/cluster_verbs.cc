// SPDX-License-Identifier: Apache-2.0
// clew node: the agent of a machine. clew root: who owns the answers of a cluster.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "cluster/clock.h"
#include "cluster/export_panes.h"
#include "cluster/names.h"
#include "cluster/node.h"
#include "cluster/roles.h"
#include "cluster/root.h"
#include "cluster/session_child.h"
#include "cluster/spill_folder.h"
#include "cluster/subject.h"
#include "cluster/wait.h"
#include "cmd/cluster_arguments.h"
#include "cmd/console.h"
#include "cmd/duration.h"
#include "cmd/installed.h"
#include "cmd/metric_places.h"
#include "cmd/parse_arguments.h"
#include "cmd/request.h"
#include "cmd/verbs.h"

namespace clew::cmd {
namespace {

using cluster::kSecond;

// How long what was counted has to go out, at the end.
constexpr int64_t kEndPatience = 10 * kSecond;
// Of all files of a node.
constexpr uint64_t kSpillMost = uint64_t{1} << 30;

// This machine's, as a word of subjects.
std::string host_name() {
  std::array<char, 256> name{};
  (void)gethostname(name.data(), name.size() - 1);
  std::string word(name.data());
  for (char& each : word) {
    if (std::isalnum(static_cast<unsigned char>(each)) == 0 && each != '-') each = '_';
  }
  return word.empty() ? "node" : word;
}

Expected<void> check_member(const std::string& name) {
  if (cluster::check_name(name) && name != "all") return {};
  return fail(ErrorCode::InvalidQuery,
              fmt::format("'{}' is no name of a member: it has letters, digits, _ and -", name));
}

// Which boot of the machine it is, and when we began.
cluster::Incarnation incarnation() {
  cluster::Incarnation made;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  size_t digits = 0;
  for (char digit = 0; file.get(digit) && digits < 2 * made.boot_id.size();) {
    if (std::isxdigit(static_cast<unsigned char>(digit)) == 0) continue;
    const int value = std::isdigit(static_cast<unsigned char>(digit)) != 0
                          ? digit - '0'
                          : (digit | 0x20) - 'a' + 10;
    std::byte& byte = made.boot_id[digits++ / 2];
    byte = (byte << 4) | static_cast<std::byte>(value);
  }
  made.start_ns = static_cast<uint64_t>(clock_ns(CLOCK_REALTIME));
  return made;
}

void tell(const std::vector<std::string>& notes, Console& console) {
  for (const std::string& note : notes)
    console.made(note);
}

void warn(const std::vector<std::string>& complaints, Console& console) {
  for (const std::string& complaint : complaints)
    console.warning(complaint);
}

// --- clew node -----------------------------------------------------------------------------------

struct NodeArguments {
  ClusterArguments cluster;
  std::string name = host_name();
  std::vector<std::string> labels;
  std::optional<std::string> spill;
  std::string roles;
  bool is_quiet = false;
  bool serves_session = false;
};

// What a node begins for each query; its standard input is a socket.
int serve() {
  // They are for the node, which ends its sessions in order.
  sigset_t signals;
  (void)sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
    (void)sigaddset(&signals, signal);
  (void)pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  engine::Request request;
  request.vocabulary_paths = default_vocabularies();
  request.extension_folder = extension_folder();
  const Expected<void> served = cluster::serve_session(STDIN_FILENO, std::move(request));
  return served ? kExitAnswered : report(served.error());
}

// None: everybody may ask who can speak to us.
Expected<std::optional<cluster::RolesFile>> roles_of(const std::string& path) {
  if (path.empty()) return std::optional<cluster::RolesFile>();
  return std::optional(CLEW_TRY(cluster::RolesFile::open(path)));
}

const cluster::Roles* roles_in(const std::optional<cluster::RolesFile>& file) {
  return file ? &file->roles() : nullptr;
}

void refresh(std::optional<cluster::RolesFile>& file, Console& console) {
  if (!file) return;
  if (const auto told = file->refresh()) console.warning(*told);
}

Expected<void> run_node(const NodeArguments& arguments) {
  CLEW_TRY(check_member(arguments.name));
  std::optional<cluster::RolesFile> roles = CLEW_TRY(roles_of(arguments.roles));
  // Before the bus has threads, which would get them.
  const FileDescriptor stop = CLEW_TRY(signals_as_descriptor(ReaderGone::GoesOn));
  const cluster::MachineClock clock;
  cluster::SessionProcesses sessions({"/proc/self/exe", "node", "--serve-session"});
  std::unique_ptr<cluster::SpillFolder> spill;
  if (arguments.spill) spill = CLEW_TRY(cluster::SpillFolder::open(*arguments.spill, kSpillMost));
  const auto bus = CLEW_TRY(connect(arguments.cluster, "node", arguments.name));
  cluster::Node node(*bus, sessions, clock,
                     {.name = arguments.name,
                      .tenant = arguments.cluster.tenant,
                      .labels = CLEW_TRY(labels_of(arguments.labels)),
                      .version = CLEW_VERSION,
                      .incarnation = incarnation(),
                      .roles = roles_in(roles)},
                     spill.get());
  Console console(arguments.is_quiet);
  if (!roles && !is_on_loopback(arguments.cluster)) {
    console.warning(
        "whoever may speak on this server can ask this node everything that it may trace; --roles "
        "FILE says who may ask what");
  }
  CLEW_TRY(node.begin());
  console.armed(
      fmt::format("node {} is there for {}", arguments.name, shown_url(arguments.cluster)));
  std::optional<int64_t> end_ns;
  while (!end_ns || (!node.is_done() && clock.monotonic_ns() < *end_ns)) {
    std::vector<pollfd> descriptors;
    node.add_descriptors(descriptors);
    if (!end_ns) descriptors.push_back({.fd = stop.get(), .events = POLLIN, .revents = 0});
    cluster::wait_for(std::move(descriptors), node.next_ns());
    if (!end_ns && cluster::is_readable(stop.get())) {
      end_ns = clock.monotonic_ns() + kEndPatience;
      node.stop();
    }
    refresh(roles, console);
    node.turn();
    if (node.problem() && !end_ns) {
      end_ns = clock.monotonic_ns() + kEndPatience;
      node.stop();
    }
    tell(node.take_notes(), console);
    warn(bus->take_complaints(), console);
  }
  node.leave();
  if (node.problem()) return tl::unexpected(*node.problem());
  return {};
}

// --- clew root -----------------------------------------------------------------------------------

struct RootArguments {
  ClusterArguments cluster;
  std::optional<std::string> store;
  std::string keep;
  uint64_t keep_bytes = 0;
  MetricArguments metrics;
  std::string name = host_name();
  std::string roles;
  std::string lease;
  bool is_quiet = false;
};

// 0: for ever.
Expected<int64_t> keep_ns_of(const std::string& text) {
  if (text.empty()) return 0;
  return static_cast<int64_t>(CLEW_TRY(parse_duration(text)));
}

// What became of what was pushed.
std::string metrics_of(const metrics::OtlpPush* push) {
  if (push == nullptr) return "";
  const metrics::PushCounts counts = push->counts();
  std::string text =
      "# HELP clew_otlp_points_total Points that were to be pushed.\n"
      "# TYPE clew_otlp_points_total counter\n";
  for (const auto& [state, count] : {std::pair("sent", counts.sent), std::pair("lost", counts.lost),
                                     std::pair("uncorrected", counts.uncorrected)})
    text += fmt::format("clew_otlp_points_total{{state=\"{}\"}} {}\n", state, count);
  return text;
}

Expected<void> run_root(const RootArguments& arguments) {
  CLEW_TRY(check_member(arguments.name));
  std::optional<cluster::RolesFile> roles = CLEW_TRY(roles_of(arguments.roles));
  // Before the bus has threads, which would get them.
  const FileDescriptor stop = CLEW_TRY(signals_as_descriptor(ReaderGone::GoesOn));
  const cluster::MachineClock clock;
  std::unique_ptr<cluster::Store> store;
  if (arguments.store) store = CLEW_TRY(cluster::Store::open(*arguments.store));
  const auto bus = CLEW_TRY(connect(arguments.cluster, "root", arguments.name));
  const auto push = CLEW_TRY(open_push(arguments.metrics));
  std::unique_ptr<metrics::Server> fetched;
  if (!arguments.metrics.prometheus.empty())
    fetched = CLEW_TRY(metrics::Server::start(arguments.metrics.prometheus));
  cluster::ExportPanes exports(
      {.otlp = push.get(), .with_windows = fetched != nullptr, .version = CLEW_VERSION});
  cluster::RootOptions options{.name = cluster::new_name(arguments.name + "-"),
                               .tenant = arguments.cluster.tenant,
                               .keep_ns = CLEW_TRY(keep_ns_of(arguments.keep)),
                               .keep_bytes = arguments.keep_bytes,
                               .roles = roles_in(roles),
                               .exports = push || fetched ? &exports : nullptr};
  if (!arguments.lease.empty()) options.lease_ns = CLEW_TRY(parse_duration(arguments.lease));
  cluster::Root root(*bus, clock, std::move(options), store.get());
  Console console(arguments.is_quiet);
  CLEW_TRY(root.begin());
  console.armed(fmt::format("a root is there for {}", shown_url(arguments.cluster)));
  if (fetched) console.made(fmt::format("metrics are at {}", fetched->url()));
  while (!cluster::is_readable(stop.get())) {
    std::vector<pollfd> descriptors = {{.fd = root.descriptor(), .events = POLLIN, .revents = 0},
                                       {.fd = stop.get(), .events = POLLIN, .revents = 0}};
    if (fetched)
      descriptors.push_back({.fd = fetched->descriptor(), .events = POLLIN, .revents = 0});
    cluster::wait_for(std::move(descriptors), root.next_ns());
    refresh(roles, console);
    root.turn();
    if (fetched && cluster::is_readable(fetched->descriptor()))
      fetched->answer(root.metrics() + exports.metrics() + metrics_of(push.get()));
    tell(root.take_notes(), console);
    warn(exports.take_notes(), console);
    if (push) warn(push->take_notes(), console);
    warn(bus->take_complaints(), console);
  }
  CLEW_TRY(root.leave());
  exports.finish();
  return push ? push->close(kPushPatienceNs) : Expected<void>();
}

int status_of(const Expected<void>& done) {
  return done ? kExitAnswered : report(done.error());
}

}  // namespace

int node_verb(int argument_count, const char* const* arguments) {
  NodeArguments parsed;
  CLI::App app("Runs queries of a cluster on this machine, and sends what they count.",
               "clew node");
  CLI::Option* const url = declare_cluster(app, parsed.cluster);
  app.add_option("--name", parsed.name, "of this node; else the machine's")->needs(url);
  app.add_option("--label", parsed.labels,
                 "what this node can be chosen by: zone=a; may be given several times")
      ->allow_extra_args(false)
      ->needs(url);
  app.add_option("--spill", parsed.spill,
                 "a folder for what no root has taken yet, where that is too much for memory; it "
                 "outlives the node")
      ->needs(url);
  app.add_option("--roles", parsed.roles,
                 "who may ask what, by keys (TOML); what nobody there has signed is refused")
      ->needs(url);
  app.add_flag("-q,--quiet", parsed.is_quiet, "only errors");
  // Of the processes that a node begins.
  app.add_flag("--serve-session", parsed.serves_session)->group("")->excludes(url);
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  if (parsed.serves_session) return serve();
  if (url->count() == 0) return wrong_usage(app, "which cluster is missing: --cluster URL");
  return status_of(run_node(parsed));
}

int key_verb(int argument_count, const char* const* arguments) {
  CLI::App app(
      "Makes a key to sign queries of a cluster with, and prints what of it a file of roles has.",
      "clew key");
  std::string path;
  bool is_shown = false;
  app.add_option("file", path, "a new file for it, which is its owner's alone")->required();
  app.add_flag("--show", is_shown, "make none: print what such a file has for roles");
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  const auto key = is_shown ? cluster::SigningKey::read(path) : cluster::SigningKey::make();
  if (!key) return report(key.error());
  if (!is_shown) {
    if (const auto written = key->write(path); !written) return report(written.error());
  }
  fmt::print("key = \"{}\"\n", cluster::text_of(key->public_key()));
  return kExitAnswered;
}

int root_verb(int argument_count, const char* const* arguments) {
  RootArguments parsed;
  CLI::App app("Owns the answers of a cluster's queries: merges what nodes count.", "clew root");
  declare_cluster(app, parsed.cluster)->required();
  CLI::Option* const store =
      app.add_option("--store", parsed.store,
                     "a folder for what is merged, so that a root that is killed loses nothing");
  app.add_option("--keep", parsed.keep,
                 "how long the store keeps an interval: 7d, 12h; otherwise for ever")
      ->check(duration())
      ->needs(store);
  app.add_option("--keep-bytes", parsed.keep_bytes,
                 "how much the store may have: 500MB, 10GB; then the oldest intervals go")
      ->transform(CLI::AsSizeValue(true))
      ->needs(store);
  declare_metrics(app, parsed.metrics);
  app.add_option("--name", parsed.name, "of this root; else the machine's");
  app.add_option("--roles", parsed.roles, "who may ask what, as of nodes");
  app.add_option("--lease", parsed.lease,
                 "nodes take their probes out when no root answers for so long (30s)")
      ->check(duration());
  app.add_flag("-q,--quiet", parsed.is_quiet, "only errors");
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  return status_of(run_root(parsed));
}

}  // namespace clew::cmd
