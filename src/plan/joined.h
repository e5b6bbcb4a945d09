// SPDX-License-Identifier: Apache-2.0
// A query with joins, taken apart: what is traced, and what is done with the events.
//
// All its streams, and of joins by cause the carriers that say which event caused which, become one
// query of single events, `events`: its sources are theirs, and a row has what any of them needs.
// What streams export beside the fields of all events shares columns, so that an event is as wide
// as its widest stream. Behind the merge, rows go by their source to the stages that join them
// (answer/joins.h, by cause; answer/time_joins.h).
//
// A condition on one stream stands in front of the merge, in the probe, where the join has all of
// that stream: the first of what passes is not the same as the first, if that passes (Pivot
// Tracing, table 3). All else is done on joined rows, which have the columns of all streams side by
// side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "causal/edge.h"
#include "query/cause.h"
#include "query/diagnostic.h"
#include "query/query.h"

namespace clew::plan {

// Of joins by time: how late an event may come, how many are held for each side of a join, and with
// how many an event is joined at most.
inline constexpr int64_t kLateNs = 100'000'000;
inline constexpr size_t kHeldMax = 1'000'000;
inline constexpr size_t kPartnersMax = 1'000;
inline constexpr size_t kChosenFromMax = 20'000;  // Partners, to choose the first or last from.
// Of what is outstanding: how much of it is held.
inline constexpr size_t kOutstandingMax = 10'000'000;

// One query: the whole, or one that another joins.
struct JoinStage {
  // What a name of the query stands for: stream 0 is `from`, others are joined.
  struct Stream {
    std::vector<size_t> columns;  // Of a row of `events`, or of the subquery; side by side in the
    size_t begin = 0;             // joined row from here on.
    std::optional<size_t> subquery = std::nullopt;  // In Joined::stages.
  };
  struct Join {
    bool left = false;
    query::JoinFilter filter = query::JoinFilter::All;
    uint32_t count = 1;
    uint16_t after = 0;
    std::optional<query::Within> within{};  // Keys: over the stream's columns, and the joined row.
  };
  std::vector<Stream> streams;
  std::vector<Join> joins;     // Of streams 1, 2, …
  std::vector<size_t> pushed;  // Conditions of the query that stand in front of the merge.
  // A condition of the query that stands behind the join, as rest.where has it, and why.
  struct Behind {
    size_t condition = 0;
    std::string_view why;
  };
  std::vector<Behind> behind;
  size_t width = 0;    // Of the joined row.
  query::Query query;  // What it was made of.
  // Over joined rows, whose columns are its inputs. It has no sources. That of a subquery has its
  // columns as values; with groups its rows are made where they are joined, of what it has so far.
  query::Query rest;
};

// What the event of a source is to be taken for, in this order. Carriers have sources of their own,
// as an event of a stream may be missed where a carrier's is not: memory cannot be read.
struct JoinRole {
  // An act, with the columns of its keys, or a stream of a stage.
  std::optional<query::Carrier> carrier = std::nullopt;
  std::vector<size_t> key_columns{};
  size_t stage = 0;
  uint16_t stream = 0;
};

struct Joined {
  query::Query events;  // Its first columns are these.
  static constexpr size_t kSource = 0, kPid = 1, kTid = 2, kTime = 3, kOwnColumns = 4;
  std::vector<std::vector<JoinRole>> roles;  // By source of `events`.
  std::vector<JoinStage> stages;             // [0] is the query.
  // What is known less well is unknown.
  causal::EdgeClass least_cause = causal::kLeastBelieved;
  [[nodiscard]] bool is_stream(size_t source) const { return !roles[source][0].carrier; }
  // A carrier's key is read from memory: a hit that cannot be read may have been an edge.
  bool carriers_read_memory = false;
};

// One line of how a joined query runs, for people and for programs.
struct PlanLine {
  std::string tier;
  std::string what;
  // Of a condition: its text, and, where it stands behind the join, why.
  std::string condition{};
  std::string why{};
  // Of a join: what it stands for in the query, and what is kept of its events.
  std::string stream{};
  std::vector<std::string> fields{};
};
std::string print(const std::vector<PlanLine>& lines);
// The lines that plan::print() gives.
std::vector<PlanLine> lines_of(std::string_view printed);

// From the probes to the answer, in the words of the query that it was. `is_there`: whether a
// source of `events` has any site. `programs`: what is known of each.
std::vector<PlanLine> explain(const Joined& joined, const std::function<bool(uint16_t)>& is_there,
                              const std::vector<std::string>& programs);
struct Plan;
// The same of one that is answered in place.
std::vector<PlanLine> explain_in_place(const Plan& plan, const Joined& joined,
                                       const std::function<bool(uint16_t)>& is_there);
// Whether the kernel says who sends which bytes to whom.
bool follows_messages(const Joined& joined);
bool counts_bytes(const Joined& joined);

// Of joins by time: how much later than events the rows of a stage, or of its first `joins`, may
// come. All of a row happened within that time, and it comes with the last of it, or when a row
// without that comes.
int64_t lag_of(const Joined& joined, size_t stage, size_t joins = SIZE_MAX);

// Where the field of events is in a row of `events`; none: nobody asks for it.
std::optional<size_t> column_of(const Joined& joined, query::Field field);

// Each of the fields `also`, which name something of any event, is a column of `events`, too, where
// all sources have it. Errors: InvalidQuery with place, for what cannot be computed on either side.
Expected<Joined> separate(const query::Query& query, const std::vector<query::Carrier>& carriers,
                          const query::Reporter& report,
                          const std::vector<query::Field>& also = {});

}  // namespace clew::plan
