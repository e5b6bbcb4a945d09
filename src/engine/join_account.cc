// SPDX-License-Identifier: Apache-2.0
#include "engine/join_account.h"

#include <array>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "abi/accessor.h"
#include "abi/region.h"
#include "output/json_value.h"
#include "query/print.h"

namespace clew::engine {
namespace {

using output::Json;
using plan::DutyCounter;

void add(JoinAccount& lines, std::string_view title, const std::string& text, const Json& json) {
  lines.push_back(
      {.text = fmt::format("  {:<10} {}", title, text), .json = output::json_text(json)});
}

double mean(uint64_t sum, uint64_t count) {
  return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count);
}

std::string tuples(uint64_t count) {
  return fmt::format("{} {}", count, count == 1 ? "tuple" : "tuples");
}

// --- from events ---------------------------------------------------------------------------------

class FromEvents {
 public:
  FromEvents(const plan::Joined& joined, const answer::JoinTally& tally)
      : joined_(joined), tally_(tally) {}

  JoinAccount run(const query::Query& query) {
    add_requests();
    add_stage(0, query, "");
    return std::move(lines_);
  }

 private:
  void add_requests() {
    const answer::RequestTally& requests = tally_.requests();
    answer::StreamTally all;
    for (const answer::StageTally& stage : tally_.stages()) {
      for (const answer::StreamTally& stream : stage.streams) {
        all.kept += stream.kept;
        all.bytes += stream.bytes;
      }
    }
    add(lines_, "requests",
        fmt::format("{}; each keeps {:.1f} tuples, {} at most; {:.1f} bytes, {} at most",
                    requests.requests, mean(all.kept, requests.requests), requests.tuples_max,
                    mean(all.bytes, requests.requests), requests.bytes_max),
        Json{{"run", "requests"},
             {"requests", requests.requests},
             {"tuples", all.kept},
             {"tuples_max", requests.tuples_max},
             {"bytes", all.bytes},
             {"bytes_max", requests.bytes_max}});
  }

  // `of`: the names of the joins that it is in.
  void add_stage(size_t at, const query::Query& query, const std::string& of) {
    const answer::StageTally& stage = tally_.stages()[at];
    const answer::StreamTally& from = stage.streams[0];
    add(lines_, of + "from",
        fmt::format("{} events, {} in no request, {} with nothing there to join; {} joined rows",
                    from.events, from.outside, stage.unjoined, stage.joined),
        Json{{"run", "from"},
             {"in", of},
             {"events", from.events},
             {"no_request", from.outside},
             {"unjoined", stage.unjoined},
             {"rows", stage.joined}});
    for (size_t i = 0; i < query.joins.size(); ++i) {
      const std::string name = of + query.joins[i].name;
      const auto& subquery = joined_.stages[at].streams[i + 1].subquery;
      if (subquery) add_stage(*subquery, query.joins[i].subquery[0], name + ".");
      add_join(name, stage.streams[i + 1]);
    }
    add_conditions(at, query, of);
  }

  void add_join(const std::string& name, const answer::StreamTally& join) {
    add(lines_, name,
        fmt::format("{} events, {} in no request; {} kept, of {:.1f} bytes, {} at most; "
                    "taken {} times",
                    join.events, join.outside, tuples(join.kept), mean(join.bytes, join.kept),
                    join.bytes_max, join.unpacked),
        Json{{"run", "join"},
             {"name", name},
             {"events", join.events},
             {"no_request", join.outside},
             {"tuples", join.kept},
             {"bytes", join.bytes},
             {"bytes_max", join.bytes_max},
             {"taken", join.unpacked}});
  }

  void add_conditions(size_t at, const query::Query& query, const std::string& of) {
    const answer::StageTally& stage = tally_.stages()[at];
    uint64_t rows = stage.joined;
    for (size_t i = 0; i < stage.dropped.size(); ++i) {
      const size_t condition = joined_.stages[at].behind[i].condition;
      const std::string text = query::print(query.where[condition], query);
      add(lines_, of + "filter",
          fmt::format("{}, behind the join: leaves out {} of {} rows", text, stage.dropped[i],
                      rows),
          Json{{"run", "filter"},
               {"in", of},
               {"condition", text},
               {"rows", rows},
               {"left_out", stage.dropped[i]}});
      rows -= stage.dropped[i];
    }
  }

  const plan::Joined& joined_;
  const answer::JoinTally& tally_;
  JoinAccount lines_;
};

// --- in place ------------------------------------------------------------------------------------

class InPlaceAccount {
 public:
  InPlaceAccount(const plan::Joined& joined, const plan::Contexts& contexts,
                 const collect::Losses& losses)
      : joined_(joined), query_(joined.stages[0].query), contexts_(contexts), losses_(losses) {}

  JoinAccount run() {
    add_requests();
    const Counts answer = of_streams(plan::Duty::Kind::Answer, 0);
    const auto [events, in_request, rows, passed] = answer;
    add(lines_, "from",
        fmt::format("{} events, {} in no request, {} with nothing there to join; {} joined rows",
                    events, events - in_request, in_request - rows, rows),
        Json{{"run", "from"},
             {"in", ""},
             {"events", events},
             {"no_request", events - in_request},
             {"unjoined", in_request - rows},
             {"rows", rows}});
    for (size_t bag = 0; bag < contexts_.bags.size(); ++bag)
      add_join(bag, rows);
    if (!joined_.stages[0].behind.empty()) {
      add(lines_, "filter",
          fmt::format("behind the join, in the probe: leaves out {} of {} rows", rows - passed,
                      rows),
          Json{{"run", "filter"}, {"in", ""}, {"rows", rows}, {"left_out", rows - passed}});
    }
    for (size_t source = 0; source < contexts_.duties.size(); ++source)
      add_act(source);
    return std::move(lines_);
  }

 private:
  using Counts = std::array<uint64_t, plan::kDutyCounters>;

  [[nodiscard]] uint64_t context_bytes() const {
    const abi::ContextLayout layout{.offset = 0,
                                    .blocks_offset = 0,
                                    .blocks_log2 = 0,
                                    .bags = static_cast<uint16_t>(contexts_.bags.size()),
                                    .bag_words = contexts_.bag_words()};
    return uint64_t{8} * layout.words();
  }

  [[nodiscard]] Counts of_source(size_t source) const {
    Counts counts{};
    const size_t begin = size_t{plan::kDutyCounters} * source;
    for (size_t i = 0; i < counts.size() && begin + i < losses_.duties.size(); ++i)
      counts[i] = losses_.duties[begin + i];
    return counts;
  }

  [[nodiscard]] Counts of_streams(plan::Duty::Kind kind, size_t bag) const {
    Counts sum{};
    for (size_t source = 0; source < contexts_.duties.size(); ++source) {
      const plan::Duty& duty = contexts_.duties[source];
      if (duty.kind != kind || duty.bag != bag) continue;
      const Counts counts = of_source(source);
      for (size_t i = 0; i < sum.size(); ++i)
        sum[i] += counts[i];
    }
    return sum;
  }

  void add_requests() {
    const auto found = losses_.causal.find(collect::kCausalRequests);
    const uint64_t requests = found == losses_.causal.end() ? 0 : found->second;
    add(lines_, "requests",
        fmt::format("{}; each has a context of {} bytes", requests, context_bytes()),
        Json{{"run", "requests"}, {"requests", requests}, {"context_bytes", context_bytes()}});
  }

  void add_join(size_t bag, uint64_t rows) {
    const auto [events, in_request, packed, passed] = of_streams(plan::Duty::Kind::Pack, bag);
    const uint32_t bytes = contexts_.bags[bag].packed_bytes();
    const std::string& name = query_.joins[bag].name;
    add(lines_, name,
        fmt::format("{} events, {} in no request; {} packed, of {} bytes; unpacked {} times",
                    events, events - in_request, tuples(packed), bytes, rows),
        Json{{"run", "join"},
             {"name", name},
             {"events", events},
             {"no_request", events - in_request},
             {"tuples", packed},
             {"bytes", packed * bytes},
             {"bytes_max", packed == 0 ? 0 : bytes},
             {"taken", rows}});
  }

  // Those of programs that are not there are left out.
  void add_act(size_t source) {
    const plan::Duty& duty = contexts_.duties[source];
    const Counts counts = of_source(source);
    if (duty.kind != plan::Duty::Kind::Act || counts[0] == 0) return;
    using abi::ContextAct;
    const uint64_t done = counts[static_cast<size_t>(DutyCounter::Done)];
    const bool takes = duty.act == ContextAct::Take || duty.act == ContextAct::Join;
    const std::string place = query::print(joined_.events.sources[source]);
    const std::string what(query::text_of(joined_.roles[source][0].carrier->cause));
    add(lines_, what,
        takes ? fmt::format("{}: {} times, {} with what was handed over, {} bytes", place,
                            counts[0], done, done * context_bytes())
              : fmt::format("{}: {} times", place, counts[0]),
        Json{{"run", "carrier"},
             {"place", place},
             {"cause", what},
             {"events", counts[0]},
             {"found", takes ? Json(done) : Json(nullptr)},
             {"bytes", takes ? Json(done * context_bytes()) : Json(nullptr)}});
  }

  const plan::Joined& joined_;
  const query::Query& query_;
  const plan::Contexts& contexts_;
  const collect::Losses& losses_;
  JoinAccount lines_;
};

}  // namespace

JoinAccount account_of(const plan::Joined& joined, const answer::JoinTally& tally) {
  return FromEvents(joined, tally).run(joined.stages[0].query);
}

JoinAccount account_in_place(const plan::Joined& joined, const plan::Contexts& contexts,
                             const collect::Losses& losses) {
  return InPlaceAccount(joined, contexts, losses).run();
}

}  // namespace clew::engine
