// SPDX-License-Identifier: Apache-2.0
#include "recorder/policy.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/error_text.h"
#include "base/nearest.h"
#include "base/settings_file.h"

namespace clew::recorder {

namespace {

constexpr size_t kPolicyBytesMax = size_t{64} << 10;
constexpr size_t kGroupBytesMax = 32;
constexpr uint32_t kSnapsMax = 100'000;

// signal(7), "Core".
constexpr std::array kCoreSignals = {SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
                                     SIGFPE,  SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS};
// signal(7), "Term".
constexpr std::array kEndSignals = {SIGHUP,  SIGINT,  SIGPIPE,   SIGALRM,   SIGTERM,
                                    SIGUSR1, SIGUSR2, SIGSTKFLT, SIGVTALRM, SIGPROF,
                                    SIGIO,   SIGPWR,  SIGKILL};

struct Unit {
  std::string_view name;
  uint64_t size;
};
constexpr std::array<Unit, 5> kTimeUnits = {{{"s", 1'000'000'000},
                                             {"m", 60'000'000'000},
                                             {"h", 3'600'000'000'000},
                                             {"d", 86'400'000'000'000},
                                             {"w", 604'800'000'000'000}}};
constexpr std::array<Unit, 4> kSizeUnits = {
    {{"B", 1}, {"KiB", 1ULL << 10}, {"MiB", 1ULL << 20}, {"GiB", 1ULL << 30}}};

// "90 min" is none of them, "90m" and "90 m" are the same. Nothing also where it does not fit.
std::optional<uint64_t> with_unit(std::string_view text, std::span<const Unit> units) {
  uint64_t number = 0;
  const char* const text_end = text.data() + text.size();
  const auto [end, problem] = std::from_chars(text.data(), text_end, number);
  std::string_view rest(end, static_cast<size_t>(text_end - end));
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  uint64_t result = 0;
  for (const Unit& unit : units) {
    if (problem == std::errc() && rest == unit.name && number > 0 &&
        !__builtin_mul_overflow(number, unit.size, &result)) {
      return result;
    }
  }
  return std::nullopt;
}

std::string names_of(std::span<const Unit> units) {
  std::string names;
  for (const Unit& unit : units)
    names += fmt::format("{}{}", names.empty() ? "" : " ", unit.name);
  return names;
}

// "SIGSEGV" of "SIGSEGV" or "segv".
std::string full_name(std::string_view name) {
  std::string result(name);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result.starts_with("SIG") ? result : "SIG" + result;
}

class Reader {
 public:
  explicit Reader(const SettingsFile& file) : file_(file) {}

  Expected<Policy> run() {
    const toml::table& all = file_.all();
    CLEW_TRY(read_recorder(all));
    if (const toml::node* const snaps = all.get("snaps")) {
      const toml::table& table = *CLEW_TRY(file_.table_of("snaps", *snaps));
      CLEW_TRY(read_snaps(table));
    }
    if (const toml::node* const when = all.get("when")) CLEW_TRY(read_when(*when));
    return std::move(policy_);
  }

 private:
  Expected<void> read_recorder(const toml::table& table) {
    CLEW_TRY(
        file_.check_keys(table, {"group", "folder", "follow", "loops", "cache", "snaps", "when"}));
    if (const toml::node* const group = table.get("group")) {
      policy_.group = CLEW_TRY(file_.text_of("group", *group));
      const Expected<void> checked = check_group(policy_.group);
      if (!checked) return file_.fail_at(group->source(), checked.error().message);
    }
    CLEW_TRY(file_.read(table, "folder", policy_.folder));
    CLEW_TRY(file_.read(table, "follow", policy_.follows));
    CLEW_TRY(file_.read(table, "cache", policy_.caches));
    if (const toml::node* const loops = table.get("loops")) {
      const std::string value = CLEW_TRY(file_.text_of("loops", *loops));
      if (value != "once" && value != "each") {
        return file_.fail_at(loops->source(),
                             fmt::format("'loops' is \"once\" or \"each\", not '{}'", value));
      }
      policy_.each_iteration = value == "each";
    }
    return {};
  }

  Expected<void> read_snaps(const toml::table& table) {
    CLEW_TRY(file_.check_keys(table, {"signals", "exits", "heartbeat", "same_crash_max", "interval",
                                      "files_max", "bytes_max"}));
    SnapLimits& limits = policy_.limits;
    if (const toml::node* const signals = table.get("signals"))
      policy_.signals = CLEW_TRY(signals_of(*signals));
    if (const toml::node* const exits = table.get("exits"))
      policy_.exits = CLEW_TRY(exits_of(*exits));
    if (const toml::node* const heartbeat = table.get("heartbeat"))
      policy_.heartbeat_ns = CLEW_TRY(quantity_of("heartbeat", *heartbeat, kTimeUnits, "30s"));
    CLEW_TRY(read_count(table, "same_crash_max", limits.same_crash_max));
    CLEW_TRY(read_count(table, "files_max", limits.files_max));
    if (const toml::node* const bytes = table.get("bytes_max"))
      limits.bytes_max = CLEW_TRY(quantity_of("bytes_max", *bytes, kSizeUnits, "512MiB"));
    if (const toml::node* const interval = table.get("interval")) {
      limits.interval_ns = CLEW_TRY(quantity_of("interval", *interval, kTimeUnits, "1h"));
      if (!limits.same_crash_max) {
        return file_.fail_at(interval->source(),
                             "'interval' is that of 'same_crash_max', which is missing");
      }
    }
    return {};
  }

  Expected<void> read_when(const toml::node& when) {
    const toml::array* const all = when.as_array();
    const bool is_list =
        all != nullptr &&
        std::all_of(all->begin(), all->end(), [](const auto& one) { return one.is_table(); });
    if (!is_list) return file_.fail_at(when.source(), "expected [[when]], a table for each query");
    if (all->size() > kConditionsMax) {
      return file_.fail_at(when.source(), fmt::format("{} queries are possible", kConditionsMax));
    }
    for (const toml::node& one : *all) {
      const toml::table& table = *one.as_table();
      CLEW_TRY(file_.check_keys(table, {"query"}));
      const toml::node* const query = table.get("query");
      if (query == nullptr) return file_.fail_at(table.source(), "[[when]] has no 'query'");
      policy_.conditions.push_back(
          {CLEW_TRY(file_.text_of("query", *query)), file_.place_text(query->source())});
    }
    return {};
  }

  Expected<void> read_count(const toml::table& table, std::string_view key,
                            std::optional<uint32_t>& count) const {
    int64_t given = 0;
    CLEW_TRY(file_.read(table, key, kSnapsMax, given));
    if (given != 0) count = static_cast<uint32_t>(given);
    return {};
  }

  Expected<uint64_t> quantity_of(std::string_view key, const toml::node& node,
                                 std::span<const Unit> units, std::string_view example) const {
    const toml::value<std::string>* const value = node.as_string();
    const auto result = value != nullptr ? with_unit(value->get(), units) : std::nullopt;
    if (result) return *result;
    const Unit& last = units.back();
    return file_.fail_at(
        node.source(),
        fmt::format("'{}' is a whole number with a unit, as \"{}\" (units: {}), from 1{} to {}{}",
                    key, example, names_of(units), units.front().name, UINT64_MAX / last.size,
                    last.name));
  }

  Expected<Exits> exits_of(const toml::node& node) const {
    const std::string value = CLEW_TRY(file_.text_of("exits", node));
    if (value == "none") return Exits::None;
    if (value == "failures") return Exits::Failures;
    if (value == "all") return Exits::All;
    return file_.fail_at(
        node.source(),
        fmt::format("'exits' is \"none\", \"failures\" or \"all\", not '{}'", value));
  }

  Expected<SignalSet> signals_of(const toml::node& node) const {
    const toml::array* const list = node.as_array();
    if (list == nullptr) {
      return file_.fail_at(node.source(),
                           "'signals' is a list of names, as [\"SIGSEGV\", \"SIGABRT\"]");
    }
    SignalSet all = 0;
    for (const toml::node& one : *list)
      all |= signal_bit(CLEW_TRY(signal_of(one)));
    return all;
  }

  Expected<int> signal_of(const toml::node& node) const {
    const std::string given = CLEW_TRY(file_.element_of("signals", node));
    const std::string name = full_name(given);
    std::vector<int> signals(kCoreSignals.begin(), kCoreSignals.end());
    signals.insert(signals.end(), kEndSignals.begin(), kEndSignals.end());
    std::vector<std::string> names;
    for (const int signal : signals) {
      names.push_back(fmt::format("SIG{}", sigabbrev_np(signal)));
      if (names.back() == name) return signal;
    }
    const std::vector<std::string_view> known(names.begin(), names.end());
    return file_.fail_at(node.source(),
                         fmt::format("'{}' is no signal that can be seen to kill{}", given,
                                     did_you_mean(nearest_name(name, known))));
  }

  const SettingsFile& file_;
  Policy policy_;
};

}  // namespace

SignalSet core_signals() {
  SignalSet all = 0;
  for (const int signal : kCoreSignals)
    all |= signal_bit(signal);
  return all;
}

Expected<void> check_group(std::string_view name) {
  const bool is_good = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c < 128 && (std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-');
  });
  if (is_good && !name.empty() && name.size() <= kGroupBytesMax) return {};
  return fail(ErrorCode::InvalidQuery,
              fmt::format("a group's name has letters, digits, '.', '_' and '-', and {} at most",
                          kGroupBytesMax));
}

Expected<Policy> parse_policy(std::string_view text, const std::string& name) {
  const SettingsFile file = CLEW_TRY(SettingsFile::parse(text, name));
  return Reader(file).run();
}

Expected<Policy> read_policy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kPolicyBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (!file.eof() && file.gcount() == 0)) {
    return fail(ErrorCode::Io,
                fmt::format("the policy {} cannot be read: {}", path, error_text(errno)));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kPolicyBytesMax) {
    return fail(ErrorCode::Limit,
                fmt::format("the policy {} has more than {} bytes", path, kPolicyBytesMax));
  }
  return parse_policy(text, path);
}

}  // namespace clew::recorder
