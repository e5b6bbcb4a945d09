// SPDX-License-Identifier: Apache-2.0
// Pipes: who reads bytes from one goes on with the request for which they were written, if that is
// said of its program and all of them were written for that request. A byte that only wakes a loop
// up is none: within a process pipes carry nothing, as what is handed over there is in memory.
#include <algorithm>

#include "causal/sockets.h"

namespace clew::causal {

// What is spliced or copied into a pipe comes from where nobody looked.
Sockets::Request Sockets::of_pipe(const Passage& passage) {
  const Profile* const profile = profile_of(passage.thread);
  const State& state = thread_of(passage.thread);
  if (passage.is_moved) return std::nullopt;
  if (state.is_own) return graph_.request_of(passage.thread);
  if (profile == nullptr || profile->onward == Onward::None || profile->onward == Onward::Oldest)
    return std::nullopt;
  if (profile->onward == Onward::Slice && state.is_ambiguous) return std::nullopt;
  return graph_.request_of(passage.thread);
}

void Sockets::write_to_pipe(const Passage& passage) {
  (void)socket_of(passage);  // Whose process has written last.
  bring(passage, of_pipe(passage));
}

// None, too, where a byte is nobody's, or another request's.
Sockets::Request Sockets::brought_by_pipe(const Passage& passage,
                                          const std::vector<ContextKey>& behind) {
  if (behind.empty() || !passage.is_placed()) return std::nullopt;
  const Request request = graph_.request_of(behind.front());
  const auto is_of_it = [&](const ContextKey& key) {
    return key.pid != passage.thread.pid && graph_.request_of(key) == request;
  };
  if (request && streams_.are_all(passage.out.reversed(), passage.bytes, is_of_it)) return request;
  const bool is_within = std::all_of(behind.begin(), behind.end(), [&](const ContextKey& key) {
    return key.pid == passage.thread.pid;
  });
  if (!is_within) ++counts_.ambiguous;
  return std::nullopt;
}

void Sockets::read_from_pipe(const Passage& passage) {
  const Thread thread = passage.thread;
  const Profile* const profile = profile_of(thread);
  const StreamKey stream = passage.out.reversed();
  if (profile == nullptr || !profile->follows_pipes) return streams_.drop(stream, passage.bytes);
  const auto writer = sockets_.find(stream.from);
  const bool is_within = writer != sockets_.end() && writer->second.pid == thread.pid;
  const std::vector<ContextKey> behind = streams_.receive(stream, passage.bytes);
  const Request request = brought_by_pipe(passage, behind);
  if (request) {
    if (enter(thread, *request, behind, profile->how)) note_read(passage, *profile, *request);
  } else if (!(is_within && passage.is_moved) &&
             !(thread_of(thread).is_own && graph_.request_of(thread))) {
    leave(thread);  // It goes on with something that nobody knows.
  }
  streams_.drop(stream, passage.bytes);
}

}  // namespace clew::causal
