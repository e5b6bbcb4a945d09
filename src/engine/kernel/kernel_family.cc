// SPDX-License-Identifier: Apache-2.0
#include "engine/kernel/kernel_family.h"

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "plan/kernel_form.h"
#include "query/parse.h"

namespace clew::engine {
namespace {

// The flag is CLONE_THREAD of clone(2): a thread is no process of its own. The new one does not run
// before this event, and its pid is nobody else's before the other.
constexpr const char* kBegins =
    "from e in tracepoint(\"task:task_newtask\") where (e.clone_flags & 0x10000) == 0 "
    "select e.args.pid as pid";
constexpr const char* kEnds =
    "from e in tracepoint(\"sched:sched_process_free\") select e.args.pid as pid";

// The place of an error in a query of ours is nothing to show.
tl::unexpected<Error> cannot_watch(const Error& error) {
  constexpr std::string_view kMark = "error: ";
  const size_t mark = error.message.find(kMark);
  const size_t begin = mark == std::string::npos ? 0 : mark + kMark.size();
  const std::string_view words = std::string_view(error.message).substr(begin);
  return fail(error.code, fmt::format("the children of the processes cannot be watched: {}",
                                      words.substr(0, words.find('\n'))));
}

struct Found {
  query::Query query;
  KernelSite site;
};

Expected<Found> find(const KernelLookup& lookup, const std::string& text) {
  auto query = query::parse({.name = "family", .text = text},
                            {.vocabulary = nullptr, .types = &lookup.types});
  if (!query) return cannot_watch(query.error());
  auto sites = find_kernel_sites(*query, lookup.catalogue, lookup.events, false);
  if (!sites) return cannot_watch(sites.error().error);
  return Found{.query = plan::kernel_form(std::move(*query)), .site = std::move(sites->front())};
}

}  // namespace

Expected<KernelFamilySites> find_family(const KernelLookup& lookup, bool follows) {
  Found begins = CLEW_TRY(find(lookup, kBegins));
  Found ends = CLEW_TRY(find(lookup, kEnds));
  return KernelFamilySites{.family = {.begins = std::move(begins.query),
                                      .ends = std::move(ends.query),
                                      .follows = follows},
                           .begins = std::move(begins.site),
                           .ends = std::move(ends.site)};
}

}  // namespace clew::engine
