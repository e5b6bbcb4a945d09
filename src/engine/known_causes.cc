// SPDX-License-Identifier: Apache-2.0
#include "engine/known_causes.h"

#include <algorithm>
#include <array>
#include <climits>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "causal/edge.h"
#include "engine/inventory.h"
#include "engine/kernel/kernel_list.h"
#include "engine/programs.h"
#include "engine/sites.h"
#include "engine/takeable.h"
#include "query/cause.h"
#include "query/print.h"
#include "query/vocabulary.h"
#include "target/catalog.h"
#include "target/proc_file.h"
#include "target/process.h"

namespace clew::engine {

// --- where it hands requests on ------------------------------------------------------------------

namespace {

bool is_exit(query::SourceKind kind) {
  return kind == query::SourceKind::Return || kind == query::SourceKind::Exception;
}

// Of functions that are all of one module. Empty: they take probes.
Expected<std::string> refusal_of(target::Catalog& catalog, CodeCache& codes,
                                 const std::vector<target::FunctionMatch>& matches,
                                 query::SourceKind kind) {
  const std::vector<Takeable> all =
      CLEW_TRY(find_takeable(catalog, codes, matches, matches.front().module));
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string& taken = is_exit(kind) ? all[i].exits : all[i].entry;
    const std::string& uprobe = is_exit(kind) ? all[i].exits_uprobe : all[i].entry_uprobe;
    if (taken == Takeable::kYes || uprobe == Takeable::kYes) continue;
    return fmt::format("{} takes no probe [{}]", catalog.display(matches[i]), taken);
  }
  return std::string();
}

Expected<HandOverPlace> look_at_place(target::Catalog& catalog, CodeCache& codes,
                                      query::Source source) {
  source.label.clear();
  HandOverPlace place{.text = query::print(source)};
  const std::string pattern = source.module.empty()
                                  ? source.function
                                  : fmt::format("{}!{}", source.module, source.function);
  std::vector<target::FunctionMatch> all = CLEW_TRY(catalog.find(pattern));
  place.functions = all.size();
  if (all.empty()) place.problem = catalog.explain_no_match(pattern).message;
  while (!all.empty() && place.problem.empty()) {
    const auto rest = std::partition(all.begin(), all.end(), [&](const auto& each) {
      return each.module == all.front().module;
    });
    const std::vector<target::FunctionMatch> of_module(all.begin(), rest);
    all.erase(all.begin(), rest);
    place.problem = CLEW_TRY(refusal_of(catalog, codes, of_module, source.kind));
  }
  return place;
}

// Whether the tracepoint could be of this process: it has the module, or the function where no
// module is named.
Expected<bool> may_have(target::Catalog& catalog, const query::Source& source) {
  if (!source.module.empty()) return !CLEW_TRY(catalog.find_modules(source.module)).empty();
  return !CLEW_TRY(catalog.find(source.function)).empty();
}

bool is_of_function(const query::Source& source) {
  return source.kind == query::SourceKind::Entry || is_exit(source.kind);
}

Expected<std::vector<HandOver>> hand_overs_of(target::Catalog& catalog,
                                              const query::Vocabulary& vocabulary) {
  CodeCache codes;
  std::vector<HandOver> all;
  for (const query::TracepointDefinition& tracepoint : vocabulary.tracepoints()) {
    if (!tracepoint.cause) continue;
    HandOver found{.tracepoint = tracepoint.name,
                   .cause = query::text_of(*tracepoint.cause),
                   .how = std::string(causal::name_of(tracepoint.cause->how)),
                   .places = {}};
    for (const query::TracepointPlace& place : tracepoint.places) {
      if (!is_of_function(place.source)) continue;
      if (!CLEW_TRY(may_have(catalog, place.source))) continue;
      found.places.push_back(CLEW_TRY(look_at_place(catalog, codes, place.source)));
    }
    if (!found.places.empty()) all.push_back(std::move(found));
  }
  return all;
}

// Who sends which bytes is told by probes that Linux has from 6.3 on, or by what calls return.
std::string message_problem() {
  if (list_kernel_events({.pattern = "syscalls:sys_exit_read"})) return "";
  for (const char* const name : {"sock:sock_send_length", "sock:sock_recv_length"}) {
    const auto listed = list_kernel_events({.pattern = name});
    if (!listed) return listed.error().message;
  }
  return "";
}

}  // namespace

Expected<KnownCauses> find_known_causes(pid_t pid,
                                        const std::vector<std::string>& vocabulary_paths) {
  CLEW_TRY(target::check_has_program(pid));
  CLEW_TRY(target::check_is_64_bit(pid));
  query::Vocabulary vocabulary;
  for (const std::string& path : vocabulary_paths)
    CLEW_TRY(vocabulary.load(path));
  Programs programs(vocabulary.programs(), causal::kLeastBelieved);
  const Programs::Said said = programs.say(pid);
  target::Catalog catalog =
      CLEW_TRY(target::Catalog::of_process(pid, target::default_catalog_options()));
  return KnownCauses{.program = said.name,
                     .says = said.text,
                     .follows_pipes = programs.follows_pipes(pid),
                     .has_table = said.table != nullptr,
                     .file = said.table == nullptr ? "" : said.table->file,
                     .is_believed = said.is_believed,
                     .hand_overs = CLEW_TRY(hand_overs_of(catalog, vocabulary)),
                     .message_problem = message_problem()};
}

// --- what requests could come through ------------------------------------------------------------

namespace {

// The lines of a table of /proc/PID/net, in words (proc(5)).
std::vector<std::vector<std::string>> lines_of(pid_t pid, const char* table) {
  std::vector<std::vector<std::string>> lines;
  std::ifstream file(target::proc_path(pid, fmt::format("net/{}", table)));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    lines.emplace_back(std::istream_iterator<std::string>(words),
                       std::istream_iterator<std::string>());
  }
  return lines;
}

// The numbers of sockets in it, which are in this column.
std::set<std::string> sockets_in(pid_t pid, const char* table, size_t column) {
  std::set<std::string> numbers;
  for (const std::vector<std::string>& line : lines_of(pid, table)) {
    if (line.size() > column) numbers.insert(line[column]);
  }
  return numbers;
}

struct SocketTables {
  explicit SocketTables(pid_t pid) {
    for (const std::vector<std::string>& line : lines_of(pid, "unix")) {
      if (line.size() <= kUnixColumn) continue;
      (line[kUnixType] == kDatagrams ? unix_datagrams : unix_sockets).insert(line[kUnixColumn]);
    }
    for (const char* const table : {"tcp", "tcp6"})
      tcp.merge(sockets_in(pid, table, kInetColumn));
    for (const char* const table : {"udp", "udp6"})
      udp.merge(sockets_in(pid, table, kInetColumn));
  }

  static constexpr size_t kInetColumn = 9;
  static constexpr size_t kUnixColumn = 6;
  static constexpr size_t kUnixType = 4;
  static constexpr std::string_view kDatagrams = "0002";  // SOCK_DGRAM
  std::set<std::string> tcp;
  std::set<std::string> udp;
  std::set<std::string> unix_sockets;
  std::set<std::string> unix_datagrams;
};

void add(std::string_view link, const SocketTables& tables, OpenCarriers& sum) {
  constexpr std::string_view kSocket = "socket:[";
  if (link.starts_with("pipe:[")) ++sum.pipes;
  if (link == "anon_inode:[io_uring]") ++sum.io_urings;
  if (!link.starts_with(kSocket)) return;
  const std::string number(link.substr(kSocket.size(), link.size() - kSocket.size() - 1));
  if (tables.tcp.contains(number)) {
    ++sum.tcp;
  } else if (tables.unix_sockets.contains(number)) {
    ++sum.unix_sockets;
  } else if (tables.unix_datagrams.contains(number)) {
    ++sum.unix_datagrams;
  } else if (tables.udp.contains(number)) {
    ++sum.udp;
  } else {
    ++sum.other_sockets;
  }
}

}  // namespace

OpenCarriers open_carriers(pid_t pid) {
  OpenCarriers sum;
  const std::string folder = target::proc_path(pid, "fd");
  const auto numbers = target::read_number_names(folder);
  if (!numbers) return sum;
  const SocketTables tables(pid);
  for (const pid_t number : *numbers) {
    std::array<char, PATH_MAX> link{};
    const ssize_t size =
        readlink(fmt::format("{}/{}", folder, number).c_str(), link.data(), link.size());
    if (size > 0) add({link.data(), static_cast<size_t>(size)}, tables, sum);
  }
  return sum;
}

}  // namespace clew::engine
