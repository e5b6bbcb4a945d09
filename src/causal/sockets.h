// SPDX-License-Identifier: Apache-2.0
// From messages to threads and back: which request a thread works for behind a read, and which one
// it writes for. Bytes bring their context to whoever reads them (streams.h); what the reader does
// with it is known from how programs of its kind work, and never for sure.
//
// A message that a program accepts and that brings no context begins a request. What a program does
// for a request has a home in it, behind which the next slice goes on that works for the request: a
// slice is a thread's time between two waits for events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "causal/graph.h"
#include "causal/positions.h"
#include "causal/streams.h"

namespace clew::causal {

// For which request a program writes on a connection that it made itself.
enum class Onward : uint8_t {
  Slice,     // That of the only message of the slice. Where there are several it is not known.
  Last,      // That of the last message that the thread has read.
  Oldest,    // That of the oldest message of the thread that nothing was written for.
  Blocking,  // As Last; waiting ends nothing, as a thread has one request at a time.
  None,      // That is not known.
};

struct Profile {
  Onward onward = Onward::Slice;
  // Answers and questions take turns on a connection.
  bool alternates = true;
  EdgeClass how = EdgeClass::Heuristic;
  // What it reads from a pipe is of the request for which another process has written it.
  bool follows_pipes = false;
  bool operator==(const Profile&) const = default;
};

// What is known of processes, by their programs.
class Profiles {
 public:
  Profiles() = default;
  Profiles(const Profiles&) = delete;
  Profiles& operator=(const Profiles&) = delete;
  virtual ~Profiles() = default;
  // Null: nothing is known, and nothing is taken for known.
  virtual const Profile* of(int64_t pid) = 0;
  // The child runs its parent's program until it executes another one.
  virtual void forks(int64_t parent, int64_t child) = 0;
  virtual void executes(int64_t pid) = 0;
  virtual void ends(int64_t pid) = 0;
  // What messages call its program.
  virtual std::string name_of(int64_t pid) = 0;
  // Where nothing is taken for known: it is known, by a guess.
  virtual bool is_guessed(int64_t pid) = 0;
};

struct SocketCounts {
  uint64_t ambiguous = 0;  // Messages that could be of several requests.
  uint64_t unplaced = 0;   // Messages of which nobody knows which bytes they are (positions.h).
  // Messages that were read by processes of which nothing is known, by process.
  std::map<int64_t, uint64_t> unknown{};
};

struct SocketLimits {
  size_t sockets = 100'000;
  size_t threads = 100'000;
  size_t unknown = 1'000;  // Processes of which nothing is known.
  size_t waiting = 1'000;  // Requests of a thread that nothing was written for.
  StreamLimits streams{};
};

class Sockets {
 public:
  // Borrows the graph, and the profiles, which may be null.
  Sockets(Graph& graph, Profiles* profiles, SocketLimits limits = {})
      : graph_(graph),
        profiles_(profiles),
        limits_(limits),
        streams_(graph, limits.streams),
        positions_(streams_) {}

  // No passage of a socket that is made from now on is missed.
  void begin(SocketNumbers numbers) { positions_.begin(std::move(numbers)); }
  void connect(Thread thread, uint64_t socket);
  void send(const Passage& passage);
  void receive(const Passage& passage);
  // It waits for events: what it has read is done with.
  void wait(Thread thread);
  // What the thread reads next, or has read last, is of a connection with several questions at a
  // time: each that the program puts then begins a request.
  void multiplex(Thread thread) { thread_of(thread).is_multiplexed = true; }
  // A thread or process has begun another one, which is in its request until it waits.
  void fork(Thread parent, Thread child, EdgeClass how);
  void execute(Thread thread);
  void end(Thread thread);
  // The program says by itself where the thread goes on.
  void begin(Thread thread, EdgeClass how);
  void leave(Thread thread);
  void put(Thread thread, ContextKey key, EdgeClass how);
  void take(Thread thread, ContextKey key, EdgeClass how);
  void join(Thread thread, ContextKey key, EdgeClass how);
  // Whether what was received lacks bytes that a call may have sent that is seen later.
  bool lacks(const Passage& received, const Passage& sent);
  // Of a passage with a count: whether no other thread was ever seen to send there.
  bool sends_alone(const Passage& sent) { return positions_.sends_alone(sent); }
  void lose();
  [[nodiscard]] const SocketCounts& counts() const { return counts_; }

 private:
  using Request = std::optional<uint64_t>;
  using HomeId = std::pair<int64_t, uint64_t>;  // Of a process, and a request.
  struct Socket {
    StreamKey out;
    int64_t pid = 0;
    Request request;          // For which it was read or written last.
    bool is_answered = true;  // It has been written to since it was read, or the other way round.
    bool is_new = false;      // Its program has connected it and not written to it.
    bool is_multiplexed = false;  // It has several questions at a time.
    std::list<uint64_t>::iterator age;
  };
  struct State {
    Request request;               // Of the last message in this slice.
    bool is_ambiguous = false;     // There was another one.
    bool is_carried = false;       // It has come from another process.
    bool is_own = false;           // The program has said by itself where the thread is.
    bool is_inherited = false;     // It was there when the thread began.
    bool is_multiplexed = false;   // multiplex()
    std::deque<uint64_t> waiting;  // Oldest.
    std::list<Thread>::iterator age;
  };
  struct Home {
    ContextKey key;
    size_t sockets = 0;
  };

  [[nodiscard]] const Profile* profile_of(Thread thread) const {
    return profiles_ == nullptr ? nullptr : profiles_->of(thread.pid);
  }
  Socket& socket_of(uint64_t id);
  Socket& socket_of(const Passage& passage);
  State& thread_of(Thread thread);
  void set_request(Socket& socket, int64_t pid, Request request);
  void release(const HomeId& id);
  ContextKey* home_of(int64_t pid, uint64_t request);
  Request alive(const Socket& socket);
  Request onward_of(const Passage& passage, Socket& socket, const Profile& profile);
  Request of_slice(Thread thread, const Profile& profile);
  void note_read(const Passage& passage, const Profile& profile, uint64_t request);
  void drop_answered(const Passage& answer, const Socket& socket);
  Request enter_read(const Passage& passage, Socket& socket, const Profile& profile);
  Request begin_read(const Passage& passage, Socket& socket, const Profile& profile);
  Request enter(Thread thread, uint64_t request, std::vector<ContextKey> behind, EdgeClass how);
  // Pipes (pipes.cc).
  Request of_pipe(const Passage& passage);
  void write_to_pipe(const Passage& passage);
  Request brought_by_pipe(const Passage& passage, const std::vector<ContextKey>& behind);
  void read_from_pipe(const Passage& passage);
  void send_placed(const Passage& passage);
  void receive_placed(const Passage& passage);
  void write(const Passage& passage, Request request);
  void bring(const Passage& passage, Request request);
  void answer(const Passage& passage, Socket& socket, const Profile& profile);

  Graph& graph_;
  Profiles* profiles_;
  SocketLimits limits_;
  Streams streams_;
  Positions positions_;
  SocketCounts counts_;
  uint64_t last_home_ = 0;
  std::map<uint64_t, Socket> sockets_;
  std::list<uint64_t> socket_ages_;
  std::map<Thread, State> threads_;
  std::list<Thread> thread_ages_;
  std::map<HomeId, Home> homes_;
};

}  // namespace clew::causal
