// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/consumer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string_view>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock_ns.h"
#include "base/spawn_attributes.h"
#include "engine/dtrace/followed_records.h"
#include "output/d/stored_key.h"
#include "output/json_value.h"
#include "query/d/check_options.h"

namespace clew::engine {

using abi::MachineRecordHeader;
using abi::MachineRecordKind;

namespace {

uint64_t now_ns() {
  return static_cast<uint64_t>(clock_ns(CLOCK_MONOTONIC));
}

// How long records may wait (option switchrate).
std::chrono::nanoseconds switch_period(const query::d::Options& options) {
  constexpr std::chrono::nanoseconds kShortest = std::chrono::milliseconds(1);
  constexpr std::chrono::nanoseconds kLongest = std::chrono::seconds(1);
  const auto found = options.values.find("switchrate");
  const auto period_ns =
      found == options.values.end() ? std::nullopt : query::d::option_period_ns(found->second);
  if (!period_ns || *period_ns > static_cast<uint64_t>(kLongest.count())) return kLongest;
  return std::max(kShortest, std::chrono::nanoseconds(*period_ns));
}

// Of two uses of one speculation; generations wrap.
bool is_older(uint32_t key, uint32_t than) {
  return than != 0 && static_cast<int32_t>(key - than) < 0;
}

}  // namespace

DtraceConsumer::DtraceConsumer(const CompiledScript& compiled, const kernel::Catalogue& catalogue,
                               const Sources& sources, DtraceConsole& console, const Rows& rows)
    : compiled_(compiled),
      catalogue_(catalogue),
      session_(sources.session),
      inline_probes_(sources.inline_probes),
      console_(console),
      symbols_(sources.spaces, sources.target, !compiled.script.options.is_set("noresolve")),
      switch_period_(switch_period(compiled.script.options)),
      options_(output::d::PrintOptions::from(compiled.script.options)),
      aggregations_(compiled.script, compiled.generated.keys, symbols_, options_),
      printer_({compiled.script, symbols_, aggregations_, options_, *this}),
      drops_(options_.has_drop_tags),
      rows_(rows),
      speculation_bytes_(sources.session.state().process.speculation_bytes),
      speculations_max_(sources.session.state().process.speculations) {
  if (rows_.tables != nullptr)
    rows_.tables->set_wall_offset(sources.session.shared().wall_offset_ns);
}

void DtraceConsumer::add_descriptors(std::vector<pollfd>& descriptors) {
  for (const int descriptor : {session_.poll_descriptor(), session_.process_descriptor()}) {
    // -1: left out by poll(2).
    descriptors.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
  }
}

Expected<void> DtraceConsumer::turn() {
  read();
  return {};
}

void DtraceConsumer::read(bool all) {
  const size_t waiting = followed_.size();
  if (inline_probes_.empty()) {
    session_.read([this](std::span<const uint8_t> bytes) { take_in_order(bytes); });
  } else {
    read_merged(all);
  }
  followed_.take(all ? followed_.size() : waiting,
                 [this](std::span<const uint8_t> bytes, const MachineRecordHeader* next) {
                   take(bytes, next);
                 });
  flush();
}

void DtraceConsumer::flush() {
  if (rows_.sink != nullptr) rows_.sink->flush();
  console_.flush();
}

// At once, unless it matters what follows.
void DtraceConsumer::take_in_order(std::span<const uint8_t> bytes) {
  if (bytes.size() < sizeof(MachineRecordHeader)) return;
  if (!options_.has_flow_indent) return take(bytes, nullptr);
  followed_.add(bytes);
}

// See record_merge.h for the order of these steps.
void DtraceConsumer::read_merged(bool all) {
  const uint64_t limit = all ? ~uint64_t{0} : now_ns();
  const auto read_kernel = [this] {
    session_.read([this](std::span<const uint8_t> bytes) { collect(bytes); });
  };
  read_kernel();
  inline_probes_.read([this](std::span<const uint8_t> bytes) {
    if (is_sound(bytes)) collect(bytes);
  });
  read_kernel();
  merge_.take(limit, [this](std::span<const uint8_t> bytes) { take_in_order(bytes); });
}

// What a speculation holds is in no order yet.
void DtraceConsumer::collect(std::span<const uint8_t> bytes) {
  if (bytes.size() < sizeof(MachineRecordHeader)) return;
  const MachineRecordHeader header = header_of(bytes);
  if (header.kind == MachineRecordKind::Data && header.speculation != 0) {
    return hold(header.speculation, bytes);
  }
  merge_.add(bytes);
}

// A process can write anything into its own rings: only what a clause that runs there could have
// recorded is looked at.
bool DtraceConsumer::is_sound(std::span<const uint8_t> bytes) const {
  const MachineRecordHeader header = header_of(bytes);
  const bool is_possible = inline_probes_.runs(header.clause) &&
                           header.cpu < abi::kMachineCpusMax &&
                           abi::machine_speculation_id(header.speculation) <= speculations_max_ &&
                           header.time_ns <= now_ns();
  if (!is_possible) return false;
  return header.kind != MachineRecordKind::Data ||
         bytes.size() == compiled_.generated.records[header.clause].size_bytes;
}

output::d::ProbeNames DtraceConsumer::names_of(uint32_t probe) const {
  const kernel::Probe* const found = catalogue_.find(probe);
  if (found == nullptr) return {probe, "", "", "", ""};
  return {probe, found->provider, found->module, found->function, found->name};
}

void DtraceConsumer::take(std::span<const uint8_t> bytes, const MachineRecordHeader* next) {
  const MachineRecordHeader header = header_of(bytes);
  switch (header.kind) {
    case MachineRecordKind::Data:
      if (header.speculation == 0) return print(bytes, next);
      return hold(header.speculation, bytes);
    case MachineRecordKind::Commit:
      return commit(header.speculation);
    case MachineRecordKind::Discard:
      return discard(header.speculation);
    case MachineRecordKind::Error:
      return take_error(bytes);
    case MachineRecordKind::Exit:
      return;
  }
}

// Not by its record, for which there may have been no room.
bool DtraceConsumer::is_over() const {
  return __atomic_load_n(&session_.shared().exit_called, __ATOMIC_ACQUIRE) != 0;
}

// The probes keep to that size; what a process made up does not grow either.
void DtraceConsumer::hold(uint32_t key, std::span<const uint8_t> bytes) {
  Held& held = speculations_[abi::machine_speculation_id(key)];
  if (is_older(key, held.key)) return;
  if (held.key != key) held = {{}, 0, key};
  if (held.bytes + bytes.size() > speculation_bytes_) return;
  held.bytes += bytes.size();
  held.records.emplace_back(bytes.begin(), bytes.end());
}

void DtraceConsumer::discard(uint32_t key) {
  const auto found = speculations_.find(abi::machine_speculation_id(key));
  if (found != speculations_.end() && found->second.key == key) speculations_.erase(found);
}

void DtraceConsumer::commit(uint32_t key) {
  const uint32_t id = abi::machine_speculation_id(key);
  const auto found = speculations_.find(id);
  if (found != speculations_.end() && found->second.key == key) {
    std::vector<Record>& records = found->second.records;
    if (!inline_probes_.empty()) {
      std::stable_sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
        return header_of(a).time_ns < header_of(b).time_ns;
      });
    }
    follow(records, records.size(),
           [this](std::span<const uint8_t> bytes, const MachineRecordHeader* next) {
             print(bytes, next);
           });
    speculations_.erase(found);
  }
  session_.free_speculation(id);
}

void DtraceConsumer::take_error(std::span<const uint8_t> bytes) {
  abi::MachineErrorRecord error{};
  if (bytes.size() < sizeof error) return;
  std::memcpy(&error, bytes.data(), sizeof error);
  console_.lines(output::d::error_text(error, names_of(error.header.probe)));
}

void DtraceConsumer::print(std::span<const uint8_t> record, const MachineRecordHeader* next) {
  ++records_;
  const MachineRecordHeader header = header_of(record);
  if (header.clause >= compiled_.generated.records.size()) return;
  printer_.print(record, compiled_.generated.records[header.clause], names_of(header.probe), next);
}

void DtraceConsumer::refresh(uint32_t aggregation) {
  show(aggregation, entries(aggregation, false));
}

void DtraceConsumer::take_out(uint32_t aggregation) {
  show(aggregation, entries(aggregation, true));
}

std::vector<kernel::MachineAggregate> DtraceConsumer::entries(uint32_t aggregation, bool takes) {
  auto found = takes ? session_.take(aggregation) : session_.aggregate(aggregation);
  inline_probes_.add_cells(aggregation, takes, found);
  return found;
}

// Entries come in no order.
uint64_t DtraceConsumer::activity() {
  uint64_t sum = records_;
  for (uint32_t i = 0; i < compiled_.script.aggregations.size(); ++i) {
    for (const kernel::MachineAggregate& entry : entries(i, false)) {
      const auto* const cells = reinterpret_cast<const char*>(entry.cells.data());
      const auto* const key = reinterpret_cast<const char*>(entry.key.data());
      const std::hash<std::string_view> hash;
      sum += 31 * hash({key, entry.key.size()}) +
             hash({cells, entry.cells.size() * sizeof(entry.cells[0])});
    }
  }
  return sum;
}

void DtraceConsumer::show(uint32_t aggregation, std::vector<kernel::MachineAggregate> entries) {
  std::vector<output::d::AggregateEntry> snapshot;
  snapshot.reserve(entries.size());
  const query::d::KeyLayout& layout = compiled_.generated.keys[aggregation];
  const auto name_at = [this](uint64_t place) { return session_.probe_name(place); };
  for (kernel::MachineAggregate& entry : entries) {
    snapshot.push_back({output::d::whole_key(layout, entry.key, name_at), std::move(entry.cells)});
  }
  aggregations_.take(aggregation, snapshot);
}

void DtraceConsumer::print_aggregations() {
  for (uint32_t i = 0; i < compiled_.script.aggregations.size(); ++i) {
    refresh(i);
  }
  if (options_.draws_aggregations()) {
    draw_rest();
  } else {
    std::string text;
    aggregations_.print_rest(text);
    console_.write(text);
  }
  flush();
}

// In the order of print_rest(). Where one table is all of the output, it is drawn whatever was
// printed of it before; others are text.
void DtraceConsumer::draw_rest() {
  const auto count = static_cast<uint32_t>(compiled_.script.aggregations.size());
  const output::FormatRow& format = output::row_of(options_.format);
  for (uint32_t turn = 0; turn < count; ++turn) {
    const uint32_t i = options_.sorts_reversed ? count - 1 - turn : turn;
    const bool is_printed = aggregations_.is_printed(i);
    if (!compiled_.script.aggregations[i].is_used) continue;
    if (is_printed && !options_.draws_at_end()) continue;
    const auto columns = output::d::columns_of(compiled_.script, compiled_.generated.keys, {&i, 1});
    if (output::check_columns(format, columns)) {
      const output::d::Table table = aggregations_.table({&i, 1});
      if (options_.draws_at_end() || !table.rows.empty()) draw({&i, 1}, table);
    } else if (!is_printed) {
      std::string text;
      aggregations_.print({&i, 1}, text);
      write(text);
    }
  }
}

void DtraceConsumer::write(std::string_view text) {
  if (options_.keeps_text_apart()) {
    console_.lines(text);
  } else {
    console_.write(text);
  }
}

void DtraceConsumer::draw(std::span<const uint32_t> aggregations, const output::d::Table& table) {
  if (rows_.tables == nullptr) return draw_alone(table);
  tell_losses();
  for (const uint32_t aggregation : aggregations)
    rows_.tables->add_rows(aggregation, table);
}

void DtraceConsumer::add_record(const MachineRecordHeader& header,
                                const output::d::ProbeNames& probe,
                                std::vector<aggregate::Value> values, std::string text) {
  if (rows_.tables != nullptr)
    rows_.tables->add_record(header, probe, std::move(values), std::move(text));
}

void DtraceConsumer::draw_alone(const output::d::Table& table) {
  if (options_.draws_at_end()) {
    console_.begin_anew();
  } else if (std::exchange(has_drawn_, true)) {
    console_.write(options_.format == output::Format::Csv ? "\r\n" : "\n");
  }
  // Beside other formats, report_drops() says what was lost.
  const std::string title = compiled_.programs.empty() ? "" : compiled_.programs[0].name;
  const output::d::Drawn drawn =
      output::d::draw(table, {.format = options_.format, .about = {.query = title}},
                      options_.format == output::Format::Svg ? losses() : collect::Losses());
  console_.write(drawn.text);
  console_.lines(drawn.notes);
}

void DtraceConsumer::reopen(const std::string& path) {
  if (rows_.tables != nullptr) {
    return console_.message(
        fmt::format("freopen(\"{}\") has no effect: {} is one answer, in one place", path,
                    output::row_of(options_.format).name));
  }
  console_.reopen(path);
  has_drawn_ = false;
}

void DtraceConsumer::truncate_output() {
  if (rows_.tables != nullptr) return;
  console_.truncate();
  has_drawn_ = false;
}

void DtraceConsumer::report_drops() {
  const abi::MachineLosses& losses = session_.shared().losses;
  console_.lines(drops_.report(inline_probes_.empty() ? losses : *all_losses()));
}

void DtraceConsumer::tell_losses() {
  if (rows_.sink != nullptr && rows_.sink->wants_losses()) rows_.sink->losses_so_far(losses());
}

void DtraceConsumer::tell_disarmed(const collect::DisarmedProbe& disarmed) {
  console_.message(collect::describe(disarmed));
  if (rows_.sink != nullptr) rows_.sink->disarmed(disarmed);
  if (options_.is_json())
    console_.write(output::json_text({{"disarmed", output::disarmed_json(disarmed)}}) + "\n");
  disarmed_.push_back(disarmed);
}

collect::Losses DtraceConsumer::losses() {
  collect::Losses losses;
  losses.disarmed = disarmed_;
  const std::vector<uint32_t>& left_out = session_.left_out();
  for (const kernel::MachineEnabling& each : session_.enablings()) {
    if (each.clauses.empty()) continue;
    const bool is_there =
        std::find(left_out.begin(), left_out.end(), each.probe.id) == left_out.end();
    losses.sites += is_there ? 1 : 0;
    if (is_there) continue;
    losses.refused.push_back(
        {.function = each.probe.function, .kind = each.probe.name, .reason = "not-traceable"});
  }
  for (const auto& [cause, count] : output::d::dropped(*all_losses()))
    losses.dropped[cause] = count;
  losses.cost = inline_probes_.cost();
  return losses;
}

// They are large.
std::unique_ptr<abi::MachineLosses> DtraceConsumer::all_losses() {
  auto all = std::make_unique<abi::MachineLosses>(session_.shared().losses);
  inline_probes_.add_losses(*all);
  return all;
}

void DtraceConsumer::finish(int exit_code) {
  print_aggregations();
  report_drops();
  if (rows_.sink != nullptr) rows_.sink->finish(losses());
  if (!options_.is_json()) return;
  console_.write(output::d::summary_json(*all_losses(), exit_code));
  console_.flush();
}

void DtraceConsumer::run_command(const std::string& command) {
  flush();
  const std::array<const char*, 4> words = {"sh", "-c", command.c_str(), nullptr};
  const SpawnAttributes attributes;
  posix_spawn_file_actions_t files{};
  (void)posix_spawn_file_actions_init(&files);
  // What it says is text beside the answer, too.
  if (options_.keeps_text_apart())
    (void)posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  pid_t pid = 0;
  // The program's own command line, which -w allowed: it is a shell's by the language.
  if (posix_spawn(&pid, "/bin/sh", &files, attributes.get(), const_cast<char* const*>(words.data()),
                  environ) == 0) {
    (void)waitpid(pid, nullptr, 0);
  }
  (void)posix_spawn_file_actions_destroy(&files);
}

void DtraceConsumer::refuse_option(const std::string& name, const std::string& value) {
  const auto checked = query::d::check_option(name, value);
  console_.message(
      fmt::format("couldn't set option \"{}\" to \"{}\": {}", name, value,
                  checked ? "Operation illegal when tracing is active" : checked.error().message));
}

}  // namespace clew::engine
