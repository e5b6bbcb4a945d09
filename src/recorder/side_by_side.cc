// SPDX-License-Identifier: Apache-2.0
#include "recorder/side_by_side.h"

#include <algorithm>

namespace clew::recorder {

namespace {

std::vector<Stretch> stretches_of(const Shown& shown, size_t thread) {
  std::vector<Stretch> to;
  const std::vector<ShownLine>& lines = shown.threads[thread].lines;
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool goes_on = i != 0 && to.back().span == lines[i].began;
    if (goes_on) {
      to.back().end = i + 1;
    } else {
      to.push_back({.thread = thread, .begin = i, .end = i + 1, .span = lines[i].began});
    }
  }
  return to;
}

bool begins_earlier(const Stretch& one, const Stretch& other) {
  if (!one.span.after || !other.span.after) return other.span.after.has_value();
  return *one.span.after < *other.span.after;
}

// Of a thread's stretches: those in front of it are first.
bool has_concurrent(const std::vector<Stretch>& all, const Stretch& one) {
  const auto first = std::partition_point(all.begin(), all.end(), [&one](const Stretch& other) {
    return is_in_front(other.span, one.span);
  });
  return first != all.end() && !is_in_front(one.span, first->span);
}

}  // namespace

bool is_in_front(const SpanNs& one, const SpanNs& other) {
  return one.before && other.after && *one.before + kCloseNs <= *other.after;
}

// Those of one thread are in their order already, and stay so.
std::vector<Stretch> side_by_side(const Shown& shown) {
  std::vector<std::vector<Stretch>> threads(shown.threads.size());
  for (size_t thread = 0; thread < threads.size(); ++thread)
    threads[thread] = stretches_of(shown, thread);
  std::vector<Stretch> all;
  for (const std::vector<Stretch>& one : threads)
    all.insert(all.end(), one.begin(), one.end());
  std::stable_sort(all.begin(), all.end(), begins_earlier);
  for (Stretch& one : all) {
    for (size_t thread = 0; thread < threads.size(); ++thread) {
      if (thread != one.thread && has_concurrent(threads[thread], one))
        one.concurrent.push_back(thread);
    }
  }
  return all;
}

}  // namespace clew::recorder
