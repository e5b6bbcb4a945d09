// SPDX-License-Identifier: Apache-2.0
#include "engine/replay.h"

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "answer/columns.h"
#include "plan/plan.h"
#include "query/parse.h"
#include "query/vocabulary.h"
#include "session/recorded_file.h"
#include "session/session.h"

namespace clew::engine {
namespace {

Expected<query::Query> parse_for_file(const Request& request) {
  query::Vocabulary vocabulary;
  for (const std::string& path : request.vocabulary_paths) {
    CLEW_TRY(vocabulary.load(path));
  }
  query::Query query =
      CLEW_TRY(query::parse(request.text, {.vocabulary = &vocabulary, .types = nullptr}));
  if (query.every_ns || request.every_ns) {
    return fail(ErrorCode::InvalidQuery, "every needs running processes; a file has one answer");
  }
  if (query.including_open) {
    return fail(ErrorCode::InvalidQuery,
                "'including open' needs running processes; a file has no open calls");
  }
  // What is in the file counts, however long it took.
  query.for_ns.reset();
  query.for_events.reset();
  return query;
}

Expected<std::unique_ptr<session::RecordedFile>> open_file(const std::string& path) {
  auto file = session::RecordedFile::open(path);
  if (file || !path.ends_with(".snap")) return file;
  return fail(file.error().code, fmt::format("{}; a snap is a source of queries: recording(\"{}\")",
                                             file.error().message, path));
}

}  // namespace

Expected<void> replay(const Request& request, int stop_descriptor, output::RowSink& sink) {
  const std::unique_ptr<session::RecordedFile> file = CLEW_TRY(open_file(request.from_path));
  const plan::Plan plan = plan::plain(CLEW_TRY(parse_for_file(request)));
  plan::Lowered lowered;
  lowered.form = plan::StateForm::Events;
  lowered.clock = file->recording().clock;
  const plan::Grouping grouping;
  session::Numbers numbers;
  CLEW_TRY(file->prepare(plan, lowered, grouping, query::Reporter(request.text), numbers));
  if (request.accept) CLEW_TRY(request.accept(answer::columns_of(plan.query)));
  session::EventFlow flow;
  session::Session session({.plan = plan,
                            .sources = {file.get()},
                            .numbers = numbers,
                            .sink = sink,
                            .flow = flow,
                            .epoch_ns = lowered.clock.epoch_ns});
  CLEW_TRY(session.begin());
  CLEW_TRY(session.answer(stop_descriptor));
  CLEW_TRY(session.stop());
  return session.finish();
}

}  // namespace clew::engine
