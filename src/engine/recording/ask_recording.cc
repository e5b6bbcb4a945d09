// SPDX-License-Identifier: Apache-2.0
#include "engine/recording/ask_recording.h"

#include <memory>

#include <fmt/format.h>

#include "answer/columns.h"
#include "engine/causes.h"
#include "engine/recording/snap_source.h"
#include "plan/plan.h"
#include "query/parse.h"
#include "query/print.h"
#include "query/vocabulary.h"
#include "session/session.h"

namespace clew::engine {
namespace {

Expected<void> check(const Request& request) {
  if (request.processes.names_some() || !request.command.empty()) {
    return fail(ErrorCode::InvalidQuery,
                "a recording is asked without processes; leave out -p, --name and -c");
  }
  if (!request.spill_path.empty()) {
    return fail(ErrorCode::InvalidQuery, "a recording is a file already; leave out --spill");
  }
  return check_graph(request, false);
}

Expected<query::Query> parse_for_recording(const Request& request) {
  query::Vocabulary vocabulary;
  for (const std::string& path : request.vocabulary_paths)
    CLEW_TRY(vocabulary.load(path));
  query::Query query = CLEW_TRY(query::parse(request.text, {.vocabulary = &vocabulary}));
  if (query.every_ns || request.every_ns) {
    return fail(ErrorCode::InvalidQuery,
                "every needs running processes; a recording has one answer");
  }
  // What is recorded counts, however long it took.
  query.for_ns.reset();
  query.for_events.reset();
  return query;
}

}  // namespace

bool asks_recording(const query::Text& text) {
  const auto places = query::places_of_sources(text);
  return places && places->recording;
}

Expected<void> ask_recording(const Request& request, int stop_descriptor, output::RowSink& sink,
                             Notices& notices) {
  CLEW_TRY(check(request));
  const plan::Plan plan = plan::plain(CLEW_TRY(parse_for_recording(request)));
  const std::unique_ptr<SnapSource> source = CLEW_TRY(SnapSource::open(plan, notices));
  session::Numbers numbers;
  CLEW_TRY(source->prepare(query::Reporter(request.text), numbers));
  if (request.accept) CLEW_TRY(request.accept(answer::columns_of(plan.query)));
  session::EventFlow flow;
  session::Session session(
      {.plan = plan, .sources = {source.get()}, .numbers = numbers, .sink = sink, .flow = flow});
  CLEW_TRY(session.begin());
  CLEW_TRY(session.answer(stop_descriptor));
  CLEW_TRY(session.stop());
  return session.finish();
}

Expected<std::string> explain_recording(const Request& request) {
  CLEW_TRY(check(request));
  const plan::Plan plan = plan::plain(CLEW_TRY(parse_for_recording(request)));
  return fmt::format("query\n{}\n\nplan\n{}\nrecordings, and no process\n{}",
                     query::print(plan.query), plan::print(plan),
                     CLEW_TRY(SnapSource::describe(plan)));
}

}  // namespace clew::engine
