// SPDX-License-Identifier: Apache-2.0
#include "causal/sockets.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "base/assert.h"

namespace clew::causal {

// --- what is known of a socket, and of a thread --------------------------------------------------

Sockets::Socket& Sockets::socket_of(uint64_t id) {
  const auto known = sockets_.find(id);
  if (known != sockets_.end()) {
    socket_ages_.splice(socket_ages_.end(), socket_ages_, known->second.age);
    return known->second;
  }
  if (sockets_.size() >= limits_.sockets) {
    const auto oldest = sockets_.find(socket_ages_.front());
    set_request(oldest->second, 0, std::nullopt);
    sockets_.erase(oldest);
    socket_ages_.pop_front();
  }
  socket_ages_.push_back(id);
  Socket& made = sockets_[id];
  made.age = std::prev(socket_ages_.end());
  return made;
}

// The kernel uses the memory of a socket again: other ends, or another process, are another one.
// Who has connected it does not know its ends yet.
Sockets::Socket& Sockets::socket_of(const Passage& passage) {
  Socket& socket = socket_of(passage.socket);
  const bool is_of_process = socket.pid == passage.thread.pid;
  const bool is_connected =
      is_of_process && socket.is_new && socket.out == StreamKey{} && !passage.accepted;
  if (!is_connected && (!is_of_process || socket.out != passage.out)) {
    set_request(socket, passage.thread.pid, std::nullopt);
    socket.is_answered = true;
    socket.is_new = false;
    socket.is_multiplexed = false;
  }
  socket.out = passage.out;
  return socket;
}

Sockets::State& Sockets::thread_of(Thread thread) {
  const auto known = threads_.find(thread);
  if (known != threads_.end()) {
    thread_ages_.splice(thread_ages_.end(), thread_ages_, known->second.age);
    return known->second;
  }
  if (threads_.size() >= limits_.threads) {
    threads_.erase(thread_ages_.front());
    thread_ages_.pop_front();
  }
  thread_ages_.push_back(thread);
  State& made = threads_[thread];
  made.age = std::prev(thread_ages_.end());
  return made;
}

void Sockets::set_request(Socket& socket, int64_t pid, Request request) {
  if (request) {
    Home& home = homes_[{pid, *request}];
    if (home.sockets++ == 0)
      home.key = {.pid = pid, .object = ++last_home_, .kind = ContextKey::Kind::Home};
  }
  if (socket.request) release({socket.pid, *socket.request});
  socket.pid = pid;
  socket.request = request;
}

void Sockets::release(const HomeId& id) {
  const auto home = homes_.find(id);
  CLEW_ASSERT(home != homes_.end());
  if (--home->second.sockets != 0) return;
  graph_.forget(home->second.key);
  homes_.erase(home);
}

// Null: no socket of the process is of the request.
ContextKey* Sockets::home_of(int64_t pid, uint64_t request) {
  const auto home = homes_.find({pid, request});
  return home == homes_.end() ? nullptr : &home->second.key;
}

Sockets::Request Sockets::alive(const Socket& socket) {
  return socket.request && graph_.knows(*socket.request) ? socket.request : std::nullopt;
}

void Sockets::lose() {
  sockets_.clear();
  socket_ages_.clear();
  threads_.clear();
  thread_ages_.clear();
  homes_.clear();
  positions_.lose();
  streams_.lose();
}

// --- slices --------------------------------------------------------------------------------------

// What it has done for its request is at home, for the next slice.
void Sockets::leave(Thread thread) {
  const Request request = graph_.request_of(thread);
  if (request) {
    const ContextKey* const home = home_of(thread.pid, *request);
    if (home != nullptr) graph_.gather(thread, *home);
  }
  graph_.end(thread);
  State& state = thread_of(thread);
  state.is_own = false;
  state.is_carried = false;
  state.is_inherited = false;
  state.is_multiplexed = false;
}

void Sockets::wait(Thread thread) {
  State& state = thread_of(thread);
  if (state.is_inherited) leave(thread);
  const Profile* const profile = profile_of(thread);
  if (profile == nullptr || profile->onward == Onward::Blocking || state.is_own) return;
  leave(thread);
  state.request.reset();
  state.is_ambiguous = false;
}

void Sockets::fork(Thread parent, Thread child, EdgeClass how) {
  graph_.fork(parent, child, how);
  State& state = thread_of(child);
  const auto age = state.age;
  state = {};
  state.age = age;
  state.is_inherited = true;
  if (profiles_ != nullptr && child.pid != parent.pid) profiles_->forks(parent.pid, child.pid);
}

void Sockets::execute(Thread thread) {
  if (profiles_ != nullptr) profiles_->executes(thread.pid);
}

void Sockets::end(Thread thread) {
  leave(thread);
  const auto known = threads_.find(thread);
  thread_ages_.erase(known->second.age);
  threads_.erase(known);
  if (profiles_ != nullptr && thread.tid == thread.pid) profiles_->ends(thread.pid);
}

// --- what programs say themselves ----------------------------------------------------------------

// What has come with a message goes on.
void Sockets::begin(Thread thread, EdgeClass how) {
  if (thread_of(thread).is_carried) return;
  leave(thread);
  graph_.begin(thread, how);
  thread_of(thread).is_own = true;
}

void Sockets::put(Thread thread, ContextKey key, EdgeClass how) {
  const State& state = thread_of(thread);
  const Request inside = graph_.request_of(thread);
  const bool is_again = inside && graph_.request_of(key) == inside;
  if (state.is_multiplexed && !state.is_carried && !is_again) graph_.begin(thread, how);
  graph_.put(thread, key, how);
}

// Behind what its program has done for the request since, too.
void Sockets::take(Thread thread, ContextKey key, EdgeClass how) {
  leave(thread);
  const Request request = graph_.request_of(key);
  const ContextKey* const home = request ? home_of(thread.pid, *request) : nullptr;
  if (home == nullptr) {
    graph_.take(thread, key, how);
  } else {
    graph_.enter(thread, std::array{key, *home}, how);
  }
  thread_of(thread).is_own = true;
}

void Sockets::join(Thread thread, ContextKey key, EdgeClass how) {
  graph_.join(thread, key, how);
  State& state = thread_of(thread);
  state.is_own = true;
  state.is_inherited = false;
}

// --- reading -------------------------------------------------------------------------------------

bool Sockets::lacks(const Passage& received, const Passage& sent) {
  if (received.count) return positions_.lacks(received, sent);
  return !streams_.has(received.out.reversed(), received.bytes) &&
         is_before(sent.bytes.begin, received.bytes.end);
}

void Sockets::receive(const Passage& passage) {
  receive_placed(passage.count ? positions_.place_received(passage) : passage);
  counts_.unplaced = positions_.unplaced();
}

void Sockets::receive_placed(const Passage& passage) {
  if (passage.is_of_pipe) return read_from_pipe(passage);
  const Profile* const profile = profile_of(passage.thread);
  if (profile != nullptr) {
    Socket& socket = socket_of(passage);
    const Request request = enter_read(passage, socket, *profile);
    if (request) note_read(passage, *profile, *request);
    if (profile->alternates) drop_answered(passage, socket);
    socket.is_answered = !passage.accepted;
    socket.is_new = false;
  } else if (counts_.unknown.size() < limits_.unknown ||
             counts_.unknown.contains(passage.thread.pid)) {
    ++counts_.unknown[passage.thread.pid];
  }
  streams_.drop(passage.out.reversed(), passage.bytes);
}

// Who sends this has read what was sent before. Of bytes that are counted that is said for all:
// those that nobody was seen to read (splice()) would be taken for the next ones.
void Sockets::drop_answered(const Passage& answer, const Socket& socket) {
  const bool is_counted =
      answer.count && !answer.accepted && !answer.is_of_pair && !socket.is_multiplexed;
  if (is_counted) {
    streams_.forget(answer.out);
  } else {
    streams_.drop_unread(answer.out);
  }
}

// The request that the thread goes on with, or none.
Sockets::Request Sockets::enter_read(const Passage& passage, Socket& socket,
                                     const Profile& profile) {
  const Thread thread = passage.thread;
  std::vector<ContextKey> behind = streams_.receive(passage.out.reversed(), passage.bytes);
  // Whoever asks for no request of his own is not in the one that began where he was answered:
  // else all that he ever asks would be one. At a pair of sockets no request begins.
  const bool is_answer = !passage.accepted && !passage.is_of_pair && profile.alternates;
  const Request asked = alive(socket);
  if (is_answer && !asked) behind.clear();
  std::erase_if(behind, [this](ContextKey key) { return !graph_.request_of(key); });
  Request request;
  for (const ContextKey& key : behind) {
    const Request one = graph_.request_of(key);
    if ((request && request != one) || (is_answer && asked != one)) {
      ++counts_.ambiguous;
      leave(thread);
      return std::nullopt;
    }
    request = one;
  }
  if (!request) return begin_read(passage, socket, profile);
  return enter(thread, *request, std::move(behind), profile.how);
}

// Behind what its process has done for the request, too. An answer brings a thread's own request
// back, behind which it may begin another one.
Sockets::Request Sockets::enter(Thread thread, uint64_t request, std::vector<ContextKey> behind,
                                EdgeClass how) {
  State& state = thread_of(thread);
  const bool is_inside = graph_.request_of(thread) == request;
  const bool is_back = is_inside && state.is_own && !state.is_carried;
  if (!is_inside) leave(thread);
  const ContextKey* const home = home_of(thread.pid, request);
  if (home != nullptr) behind.push_back(*home);
  graph_.enter(thread, behind, how);
  state.is_carried = !is_back;
  return graph_.request_of(thread) == request ? Request(request) : std::nullopt;
}

// The bytes bring no request.
Sockets::Request Sockets::begin_read(const Passage& passage, Socket& socket,
                                     const Profile& profile) {
  const Thread thread = passage.thread;
  Request asked;
  if (!passage.is_of_pair) asked = alive(socket);
  if (!passage.accepted && asked) return enter(thread, *asked, {}, profile.how);
  State& state = thread_of(thread);
  const Request inside = graph_.request_of(thread);
  // The program knows better: more of what it says that it works for.
  if (state.is_own && inside) return passage.accepted ? inside : std::nullopt;
  if (!passage.accepted) {
    // An answer to what nobody knows.
    if (!state.is_own && profile.onward != Onward::Blocking) leave(thread);
    return std::nullopt;
  }
  socket.is_multiplexed = socket.is_multiplexed || state.is_multiplexed;
  const bool goes_on = profile.alternates && !socket.is_answered && asked;
  if (socket.is_multiplexed || !goes_on || inside != asked) leave(thread);
  if (socket.is_multiplexed) {
    multiplex(thread);
    return std::nullopt;
  }
  if (goes_on) {
    const ContextKey* const home = home_of(thread.pid, *asked);
    if (home != nullptr) graph_.enter(thread, std::array{*home}, profile.how);
  } else {
    graph_.begin(thread, profile.how);
  }
  return graph_.request_of(thread);
}

void Sockets::note_read(const Passage& passage, const Profile& profile, uint64_t request) {
  Socket& socket = socket_of(passage);
  State& state = thread_of(passage.thread);
  const bool is_first = socket.request != request;
  set_request(socket, passage.thread.pid, request);
  graph_.gather(passage.thread, *home_of(passage.thread.pid, request));
  if (profile.onward == Onward::Oldest && passage.accepted && is_first) {
    if (state.waiting.size() >= limits_.waiting) state.waiting.pop_front();
    state.waiting.push_back(request);
  }
  const bool is_other = state.request && state.request != request && !state.is_own;
  state.request = request;
  if (!is_other || profile.onward != Onward::Slice) return;
  ++counts_.ambiguous;
  state.is_ambiguous = true;
  leave(passage.thread);
}

// --- writing -------------------------------------------------------------------------------------

void Sockets::connect(Thread thread, uint64_t id) {
  const Profile* const profile = profile_of(thread);
  Socket& socket = socket_of(id);
  const bool is_own = thread_of(thread).is_own;
  Request request;
  if (is_own) {
    request = graph_.request_of(thread);
  } else if (profile != nullptr) {
    request = of_slice(thread, *profile);
  }
  set_request(socket, thread.pid, request);
  socket.out = {};
  socket.is_answered = true;
  socket.is_new = true;
  socket.is_multiplexed = false;
  if (request && graph_.request_of(thread) == request)
    graph_.gather(thread, *home_of(thread.pid, *request));
}

void Sockets::send(const Passage& passage) {
  send_placed(passage.count ? positions_.place_sent(passage) : passage);
}

void Sockets::send_placed(const Passage& passage) {
  if (passage.is_of_pipe) return write_to_pipe(passage);
  const Profile* const profile = profile_of(passage.thread);
  Socket& socket = socket_of(passage);
  if (profile != nullptr && passage.accepted) return answer(passage, socket, *profile);
  Request request;
  if (profile != nullptr) {
    request = onward_of(passage, socket, *profile);
  } else if (thread_of(passage.thread).is_own) {
    request = graph_.request_of(passage.thread);
  }
  if (socket.is_new) streams_.renew(passage.out);
  socket.is_new = false;
  socket.is_answered = false;
  set_request(socket, passage.thread.pid, request);
  write(passage, request);
}

Sockets::Request Sockets::of_slice(Thread thread, const Profile& profile) {
  State& state = thread_of(thread);
  switch (profile.onward) {
    case Onward::Slice:
      if (state.is_ambiguous) ++counts_.ambiguous;
      return state.is_ambiguous ? std::nullopt : graph_.request_of(thread);
    case Onward::Last:
    case Onward::Blocking:
      return graph_.request_of(thread);
    case Onward::Oldest:
      while (!state.waiting.empty()) {
        const uint64_t request = state.waiting.front();
        state.waiting.pop_front();
        if (graph_.knows(request)) return request;
      }
      return std::nullopt;
    case Onward::None:
      return std::nullopt;
  }
  return std::nullopt;
}

// What is written on a connection that the program has made.
Sockets::Request Sockets::onward_of(const Passage& passage, Socket& socket,
                                    const Profile& profile) {
  if (thread_of(passage.thread).is_own) {
    const Request own = graph_.request_of(passage.thread);
    if (own) return own;
  }
  // The first message is of the slice that connected it; more of a message is of its request.
  // Either end of a pair may send as often as it likes.
  const bool goes_on =
      !passage.is_of_pair && (socket.is_new || (profile.alternates && !socket.is_answered));
  if (goes_on) {
    const Request same = alive(socket);
    if (same) return same;
  }
  return of_slice(passage.thread, profile);
}

// What is written on a connection that the program has accepted.
void Sockets::answer(const Passage& passage, Socket& socket, const Profile& profile) {
  const Thread thread = passage.thread;
  const bool is_own = thread_of(thread).is_own;
  const Request inside = graph_.request_of(thread);
  Request request;
  if (is_own && inside) {
    request = inside;
  } else if (profile.alternates && !socket.is_multiplexed) {
    request = alive(socket);
    if (!request) request = inside;
  }
  write(passage, request);
  socket.is_answered = true;
  const bool ends = profile.onward == Onward::Slice || profile.onward == Onward::Oldest;
  if (ends && request && inside == request && !is_own) leave(thread);
}

void Sockets::write(const Passage& passage, Request request) {
  if (request) std::erase(thread_of(passage.thread).waiting, *request);
  bring(passage, request);
}

// Behind all that this process has done for the request so far.
void Sockets::bring(const Passage& passage, Request request) {
  if (!request || !passage.is_placed()) return;
  const int64_t pid = passage.is_of_pipe ? passage.thread.pid : 0;
  const std::optional<ContextKey> key = streams_.send(passage.out, passage.bytes, pid);
  if (!key) {
    ++counts_.ambiguous;
    return;
  }
  const bool is_inside = graph_.request_of(passage.thread) == request;
  const ContextKey* const home = home_of(passage.thread.pid, *request);
  if (home == nullptr) {
    if (is_inside) graph_.put(passage.thread, *key);
    return;
  }
  if (is_inside) graph_.gather(passage.thread, *home);
  graph_.copy(*home, *key);
}

}  // namespace clew::causal
