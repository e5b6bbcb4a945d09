// SPDX-License-Identifier: Apache-2.0
#include "session/recording.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace clew::session {
namespace {

using Json = nlohmann::json;

Json json_of(const plan::HeldCapture& held) {
  const query::Expression& meaning = held.meaning;
  const query::Type& type = meaning.type;
  return {{"text", held.text},
          {"is_field", meaning.kind == query::ExpressionKind::Field},
          {"field", static_cast<unsigned>(meaning.field)},
          {"index", meaning.index},
          {"type",
           {static_cast<unsigned>(type.kind), type.size_bytes, type.is_signed,
            static_cast<unsigned>(type.unit), type.capacity_bytes}}};
}

// A number of an enumeration whose last member is `last`; nothing when it is none.
template <typename Enumeration>
bool read_enumeration(const Json& json, Enumeration last, Enumeration& into) {
  if (!json.is_number_unsigned() || json.get<uint64_t>() > static_cast<uint64_t>(last))
    return false;
  into = static_cast<Enumeration>(json.get<uint64_t>());
  return true;
}

bool read_held(const Json& json, plan::HeldCapture& held) {
  held.text = json.at("text").get<std::string>();
  query::Expression& meaning = held.meaning;
  // What is no field is decoded by its type alone; `Load` is such an expression.
  meaning.kind =
      json.at("is_field").get<bool>() ? query::ExpressionKind::Field : query::ExpressionKind::Load;
  meaning.index = json.at("index").get<uint16_t>();
  const Json& type = json.at("type");
  meaning.type.size_bytes = type.at(1).get<uint8_t>();
  meaning.type.is_signed = type.at(2).get<bool>();
  meaning.type.capacity_bytes = type.at(4).get<uint16_t>();
  return read_enumeration(json.at("field"), query::Field::Uid, meaning.field) &&
         read_enumeration(type.at(0), query::TypeKind::Stack, meaning.type.kind) &&
         read_enumeration(type.at(3), query::Unit::Address, meaning.type.unit);
}

Json json_of(const std::map<uint64_t, std::string>& names) {
  Json list = Json::array();
  for (const auto& [number, name] : names)
    list.push_back({number, name});
  return list;
}

std::map<uint64_t, std::string> read_names(const Json& list) {
  std::map<uint64_t, std::string> names;
  for (const Json& item : list)
    names[item.at(0).get<uint64_t>()] = item.at(1).get<std::string>();
  return names;
}

// Each frame as a list, in the order of its members.
Json json_of(const output::KeptStacks::Frames& frames) {
  Json list = Json::array();
  for (const aggregate::Frame& frame : frames) {
    list.push_back({frame.symbol, frame.offset, frame.module, frame.file, frame.line, frame.inlined,
                    frame.address});
  }
  return list;
}

output::KeptStacks::Frames read_frames(const Json& json) {
  output::KeptStacks::Frames frames;
  for (const Json& item : json) {
    frames.push_back({.symbol = item.at(0).get<std::string>(),
                      .offset = item.at(1).get<uint64_t>(),
                      .module = item.at(2).get<std::string>(),
                      .file = item.at(3).get<std::string>(),
                      .line = item.at(4).get<uint32_t>(),
                      .inlined = item.at(5).get<bool>(),
                      .address = item.at(6).get<uint64_t>()});
  }
  return frames;
}

// What places mean, each once; and the places, with numbers of these.
Json json_of(const output::KeptStacks& stacks) {
  Json frames = Json::array();
  for (const output::KeptStacks::Frames& each : stacks.all_frames())
    frames.push_back(json_of(each));
  Json places = Json::array();
  for (const auto& [place, meaning] : stacks.places()) {
    places.push_back(
        {place.process, place.address, place.is_call, meaning.frames, meaning.is_signal_return});
  }
  return {{"frames", std::move(frames)}, {"places", std::move(places)}};
}

// False where there is more than was ever kept.
bool read_stacks(const Json& json, output::KeptStacks& stacks) {
  std::vector<output::KeptStacks::Frames> frames;
  for (const Json& item : json.at("frames")) {
    if (item.size() > output::KeptStacks::kFramesMax) return false;
    frames.push_back(read_frames(item));
  }
  for (const Json& item : json.at("places")) {
    const auto number = item.at(3).get<uint64_t>();
    const bool is_put =
        number < frames.size() && stacks.put({.process = item.at(0).get<uint64_t>(),
                                              .address = item.at(1).get<uint64_t>(),
                                              .is_call = item.at(2).get<bool>()},
                                             frames[number], item.at(4).get<bool>());
    if (!is_put) return false;
  }
  return true;
}

Json json_of(const answer::Owner& owner) {
  return {owner.container, owner.unit, owner.cgroup, owner.user, owner.uid};
}

answer::Owner read_owner(const Json& json) {
  return {.container = json.at(0).get<std::string>(),
          .unit = json.at(1).get<std::string>(),
          .cgroup = json.at(2).get<std::string>(),
          .user = json.at(3).get<std::string>(),
          .uid = json.at(4).get<uint32_t>()};
}

Json json_of(const RecordedProcess& process) {
  Json incarnations = Json::array();
  for (const auto& [number, incarnation] : process.incarnations) {
    incarnations.push_back({number, incarnation.pid, incarnation.name, incarnation.node_name,
                            json_of(incarnation.owner)});
  }
  Json sites = Json::array();
  for (const plan::SiteNames& site : process.sites)
    sites.push_back({site.function, site.module, site.probe});
  return {{"incarnations", std::move(incarnations)},
          {"sites", std::move(sites)},
          {"threads", json_of(process.threads)},
          {"symbols", json_of(process.symbols)}};
}

RecordedProcess read_process(const Json& json) {
  RecordedProcess process;
  for (const Json& item : json.at("incarnations")) {
    RecordedProcess::Incarnation& one = process.incarnations[item.at(0).get<uint64_t>()];
    one = {.pid = item.at(1).get<pid_t>(), .name = item.at(2).get<std::string>()};
    if (item.size() > 3) one.node_name = item.at(3).get<std::string>();
    if (item.size() > 4) one.owner = read_owner(item.at(4));
  }
  for (const Json& item : json.at("sites")) {
    process.sites.push_back({.source = 0,
                             .function = item.at(0).get<std::string>(),
                             .module = item.at(1).get<std::string>(),
                             .probe = item.at(2).get<std::string>()});
  }
  process.threads = read_names(json.at("threads"));
  process.symbols = read_names(json.at("symbols"));
  return process;
}

bool read_recording(const Json& json, Recording& recording) {
  recording.sources = json.at("sources").get<std::vector<std::string>>();
  const Json& clock = json.at("clock");
  recording.clock = {.tick_multiplier = clock.at(0).get<uint64_t>(),
                     .tick_shift = clock.at(1).get<uint32_t>() & 31,
                     .base_ticks = clock.at(2).get<uint64_t>(),
                     .base_ns = clock.at(3).get<uint64_t>(),
                     .epoch_ns = clock.at(4).get<int64_t>()};
  recording.host = json.at("host").get<std::string>();
  for (const Json& item : json.at("held")) {
    if (!read_held(item, recording.held.emplace_back())) return false;
  }
  for (const Json& item : json.at("processes"))
    recording.processes.push_back(read_process(item));
  // Files of earlier versions have none.
  if (json.contains("stacks") && !read_stacks(json.at("stacks"), recording.stacks)) return false;
  for (const auto& [cause, count] : json.at("missed").items())
    collect::count_cause(recording.losses.missed, cause, count.get<uint64_t>());
  for (const auto& [cause, count] : json.at("dropped").items())
    collect::count_cause(recording.losses.dropped, cause, count.get<uint64_t>());
  return true;
}

Json json_of(const collect::Causes& causes) {
  Json object = Json::object();
  for (const auto& [cause, count] : causes)
    object[cause] = count;
  return object;
}

// The library would make integers of them, of whatever size. Without recursion: who wrote the file
// says how deep it is. (A callback of the parser is no way: it makes the work grow with the
// square.)
bool has_fractions(const Json& json) {
  std::vector<const Json*> open = {&json};
  while (!open.empty()) {
    const Json& one = *open.back();
    open.pop_back();
    if (one.is_number_float()) return true;
    if (!one.is_structured()) continue;
    for (const Json& element : one)
      open.push_back(&element);
  }
  return false;
}

}  // namespace

std::string note_of(const Recording& recording) {
  Json held = Json::array();
  for (const plan::HeldCapture& capture : recording.held)
    held.push_back(json_of(capture));
  Json processes = Json::array();
  for (const RecordedProcess& process : recording.processes)
    processes.push_back(json_of(process));
  const plan::Clock& clock = recording.clock;
  const Json note = {
      {"sources", recording.sources},
      {"held", std::move(held)},
      {"clock",
       {clock.tick_multiplier, clock.tick_shift, clock.base_ticks, clock.base_ns, clock.epoch_ns}},
      {"host", recording.host},
      {"processes", std::move(processes)},
      {"stacks", json_of(recording.stacks)},
      {"missed", json_of(recording.losses.missed)},
      {"dropped", json_of(recording.losses.dropped)}};
  return note.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The library throws where a member is missing or of another type; it ends here.
Expected<Recording> recording_of(const std::string& note) {
  Recording recording;
  const Json json = Json::parse(note, nullptr, false);
  try {
    const bool is_note = !json.is_discarded() && !has_fractions(json);
    if (is_note && read_recording(json, recording)) return recording;
  } catch (const Json::exception&) {
  }
  return fail(ErrorCode::InvalidQuery, "its description of the events cannot be read");
}

std::string RecordedNames::function(uint64_t index) {
  return index < process_.sites.size() ? process_.sites[index].function : std::string();
}

std::string RecordedNames::module(uint64_t index) {
  return index < process_.sites.size() ? process_.sites[index].module : std::string();
}

std::string RecordedNames::probe(uint64_t index) {
  return index < process_.sites.size() ? process_.sites[index].probe : std::string();
}

int64_t RecordedNames::pid(uint64_t process) {
  const auto found = process_.incarnations.find(process);
  return found == process_.incarnations.end() ? 0 : found->second.pid;
}

std::string RecordedNames::process_name(uint64_t process) {
  const auto found = process_.incarnations.find(process);
  return found == process_.incarnations.end() ? std::string() : found->second.name;
}

std::string RecordedNames::node_name(uint64_t process) {
  const auto found = process_.incarnations.find(process);
  return found == process_.incarnations.end() ? std::string() : found->second.node_name;
}

const answer::Owner& RecordedNames::owner(query::Field, uint64_t process) {
  const auto found = process_.incarnations.find(process);
  return found == process_.incarnations.end() ? unknown_ : found->second.owner;
}

std::string RecordedNames::thread_name(uint64_t, uint64_t tid) {
  const auto found = process_.threads.find(tid);
  return found == process_.threads.end() ? fmt::format("thread {}", tid) : found->second;
}

std::string RecordedNames::symbol(uint64_t address) {
  const auto found = process_.symbols.find(address);
  return found == process_.symbols.end() ? fmt::format("{:#x}", address) : found->second;
}

}  // namespace clew::session
