// SPDX-License-Identifier: Apache-2.0
// The sessions that a node drives: what it wants of them, and what they say. All functions are
// called by the node's thread.
#pragma once

#include <memory>
#include <vector>

#include "base/error.h"
#include "cluster/session_frame.h"

namespace clew::cluster {

class NodeSession {
 public:
  NodeSession() = default;
  NodeSession(const NodeSession&) = delete;
  NodeSession& operator=(const NodeSession&) = delete;
  virtual ~NodeSession() = default;

  // Readable when it has said something; -1: it never is.
  [[nodiscard]] virtual int descriptor() const = 0;
  // What it has said since, in order. The last frame of all is Ended or Failed, whatever becomes of
  // it.
  virtual std::vector<Frame> take() = 0;
  // It is to take its probes out, give its last pane, and end.
  virtual void stop() = 0;
};

class NodeSessions {
 public:
  NodeSessions() = default;
  NodeSessions(const NodeSessions&) = delete;
  NodeSessions& operator=(const NodeSessions&) = delete;
  virtual ~NodeSessions() = default;
  virtual Expected<std::unique_ptr<NodeSession>> begin(const SessionWant& want) = 0;
};

// Each in a process of its own (session_child.h), which is begun by this command, with the socket
// as its standard input.
class SessionProcesses final : public NodeSessions {
 public:
  explicit SessionProcesses(std::vector<std::string> command) : command_(std::move(command)) {}
  Expected<std::unique_ptr<NodeSession>> begin(const SessionWant& want) override;

 private:
  std::vector<std::string> command_;
};

}  // namespace clew::cluster
