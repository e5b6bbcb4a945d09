// SPDX-License-Identifier: Apache-2.0
// The request that was kept, as output::RequestGraph: names instead of numbers, times since its
// begin.
#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "answer/columns.h"
#include "query/cause.h"
#include "query/print.h"
#include "session/request_recorder.h"

namespace clew::session {

using output::RequestGraph;

namespace {

std::string name_of_source(const query::Source& source) {
  return source.label.empty() ? query::print(source) : source.label;
}

// "size" of "e.size".
std::string short_name(const std::string& name) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  const auto dot = std::find_if_not(name.begin(), name.end(), is_word);
  const bool is_field = dot != name.end() && *dot == '.' && dot + 1 != name.end() &&
                        std::all_of(dot + 1, name.end(), is_word);
  return is_field ? std::string(dot + 1, name.end()) : name;
}

// As the answer calls it; none: it is no column there.
std::optional<std::string> name_of(const query::Query& rest, size_t input) {
  const auto is_it = [input](const query::NamedExpression& value) {
    return value.expression.kind == query::ExpressionKind::Input && value.expression.index == input;
  };
  const auto named = std::find_if(rest.values.begin(), rest.values.end(), is_it);
  return named == rest.values.end() ? std::nullopt : std::optional(named->name);
}

}  // namespace

class RequestRecorder::Drawing {
 public:
  Drawing(const RequestRecorder& recorder, const Request& request, int64_t epoch_ns)
      : recorder_(recorder), request_(request), epoch_ns_(epoch_ns) {}

  RequestGraph draw() {
    graph_.number = request_.number;
    graph_.begin_ns = minus(request_.begin, minus(0, epoch_ns_));
    graph_.duration_ns = request_.duration();
    graph_.begun_by = source(request_.begun_by);
    graph_.rows = request_.rows;
    graph_.events_left_out = request_.events_left_out;
    graph_.segments_left_out = request_.segments_left_out;
    graph_.not_taken = request_.not_taken;
    for (const auto& one : request_.hand_overs)
      graph_.not_taken += is_left(one) ? 1 : 0;
    add_lanes();
    add_segments();
    for (const Event& event : request_.events)
      add_event(event);
    for (const Edge& edge : request_.edges)
      add_edge(edge);
    return std::move(graph_);
  }

 private:
  [[nodiscard]] int64_t since_begin(int64_t time) const { return minus(time, request_.begin); }
  [[nodiscard]] std::string source(uint32_t number) const {
    return name_of_source(recorder_.joined_.events.sources[number]);
  }

  // Processes by their first thread's coming, threads by theirs.
  void add_lanes() {
    std::vector<causal::Thread> threads;
    std::map<int64_t, size_t> processes;
    for (const Segment& segment : request_.segments) {
      if (segment.is_empty) continue;
      const bool is_known =
          std::find(threads.begin(), threads.end(), segment.thread) != threads.end();
      if (!is_known) threads.push_back(segment.thread);
      processes.emplace(segment.thread.pid, processes.size());
    }
    std::stable_sort(threads.begin(), threads.end(), [&processes](const auto& a, const auto& b) {
      return processes.at(a.pid) < processes.at(b.pid);
    });
    for (const causal::Thread& thread : threads) {
      lanes_.emplace(thread, graph_.lanes.size());
      const auto names = request_.lanes.find(thread);
      const Lane lane = names == request_.lanes.end() ? Lane{} : names->second;
      graph_.lanes.push_back(
          {.pid = thread.pid, .tid = thread.tid, .process = lane.process, .thread = lane.thread});
    }
  }

  // A fork names a thread of the parent and one of another process, and only one of them is there.
  void add_segments() {
    for (const Segment& segment : request_.segments) {
      places_.push_back(graph_.segments.size());
      if (segment.is_empty) {
        places_.back() = SIZE_MAX;
        continue;
      }
      output::GraphSegment& made = graph_.segments.emplace_back();
      made.lane = lanes_.at(segment.thread);
      made.begin_ns = since_begin(segment.begin);
      made.end_ns = since_begin(segment.end);
      if (segment.left) made.left_ns = since_begin(*segment.left);
    }
  }

  void add_event(const Event& event) {
    output::GraphEvent& made = graph_.events.emplace_back();
    made.segment = places_[event.segment];
    made.ns = since_begin(event.time);
    made.source = source(event.source);
    made.is_named = !recorder_.joined_.events.sources[event.source].label.empty();
    made.function = event.function;
    made.rows = event.rows;
    // One hit may be of several streams; a name of the answer says most.
    std::set<std::string> shown;
    for (const bool has_name : {true, false}) {
      for (const plan::JoinRole& role : recorder_.joined_.roles[event.source]) {
        if (!role.carrier) add_values(event, role, has_name, shown);
      }
    }
  }

  // What its lane and its place say needs no second word.
  [[nodiscard]] bool is_shown_anyway(size_t column) const {
    return column < plan::Joined::kOwnColumns || column == recorder_.time_column_ ||
           column == recorder_.process_column_ || column == recorder_.thread_column_ ||
           column == recorder_.function_column_;
  }

  void add_values(const Event& event, const plan::JoinRole& role, bool has_name,
                  std::set<std::string>& shown) {
    const plan::JoinStage& stage = recorder_.joined_.stages[role.stage];
    const plan::JoinStage::Stream& stream = stage.streams[role.stream];
    std::vector<output::GraphValue>& values = graph_.events.back().values;
    for (size_t i = 0; i < stream.columns.size(); ++i) {
      const query::Input& input = stage.rest.inputs[stream.begin + i];
      const std::optional<std::string> name = name_of(stage.rest, stream.begin + i);
      if (name.has_value() != has_name) continue;
      output::GraphValue made{.column = answer::column_of(input),
                              .value = event.row[stream.columns[i]]};
      made.column.name = short_name(name.value_or(input.name));
      const bool is_known = std::any_of(
          values.begin(), values.end(),
          [&made](const output::GraphValue& each) { return each.column.name == made.column.name; });
      const bool is_left_out = is_shown_anyway(stream.columns[i]) || is_known ||
                               made.column.type == aggregate::ColumnType::Stack ||
                               std::holds_alternative<std::monostate>(made.value);
      if (is_left_out || !shown.insert(short_name(input.name)).second) continue;
      answer::name_enumerator(stage.rest, made.value, input.type);
      values.push_back(std::move(made));
    }
  }

  void add_edge(const Edge& edge) {
    const size_t from = places_[edge.from.segment];
    const size_t to = places_[edge.to];
    if (from == SIZE_MAX || to == SIZE_MAX) return;
    output::GraphEdge& made = graph_.edges.emplace_back();
    made.from = from;
    made.to = to;
    made.from_ns = since_begin(edge.from.time);
    made.to_ns = since_begin(edge.time);
    if (!edge.how) return;
    made.how = causal::name_of(*edge.how);
    if (edge.has_place) made.put = source(edge.from.source);
    made.take = source(edge.source);
  }

  const RequestRecorder& recorder_;
  const Request& request_;
  int64_t epoch_ns_;
  RequestGraph graph_;
  std::map<causal::Thread, size_t> lanes_;
  std::vector<size_t> places_;  // Of segments in the picture; SIZE_MAX: it is not there.
};

RequestGraph RequestRecorder::finish(int64_t epoch_ns) {
  std::vector<uint64_t> open(ages_.begin(), ages_.end());
  std::sort(open.begin(), open.end());
  for (const uint64_t request : open) {
    Request taken = take_out(request);
    const bool is_over = taken.inside == 0;
    decide(std::move(taken), is_over);
  }
  RequestGraph graph;
  if (best_) graph = Drawing(*this, *best_, epoch_ns).draw();
  graph.choice = choice_;
  graph.requests = requests_;
  graph.with_rows = with_rows_;
  graph.over = over_;
  graph.is_over = best_ && best_is_over_;
  graph.requests_left_out = given_up_;
  return graph;
}

}  // namespace clew::session
