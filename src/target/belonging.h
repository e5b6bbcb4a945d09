// SPDX-License-Identifier: Apache-2.0
// To what a process belongs: its control group, and the unit of systemd, container and pod that the
// group's path names. Those who make containers write their ids there, each in a form of its own:
//
//   docker          …/docker/ID, …/docker-ID.scope
//   podman          …/libpod-ID.scope, …/libpod-ID; monitors are libpod-conmon-ID
//   containerd      …/cri-containerd-ID.scope, …/cri-containerd:ID, …/nerdctl-ID.scope
//   CRI-O           …/crio-ID.scope, …/crio-ID; monitors are crio-conmon-ID
//   Kubernetes      …/kubepods/…/podUID/ID, …/kubepods-…-podUID.slice/…; in UID `_` stands for `-`
//   LXC             …/lxc.payload.NAME, …/lxc/NAME; monitors are lxc.monitor.NAME
//   systemd-nspawn  …/machine-NAME.scope, …/systemd-nspawn@NAME.service
//
// The innermost one counts: a container in a container is that one. Paths are as the reader's own
// cgroup name space shows them. Free of state, safe from any thread.
#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/error.h"

namespace clew::target {

struct Belonging {
  std::string cgroup;     // The path: "/system.slice/nginx.service".
  std::string unit;       // The innermost service or scope; empty: none.
  std::string container;  // An id of 64 digits, or a name (LXC, systemd-nspawn); empty: none.
  std::string runtime;    // Whose it is: "docker"; empty where only an id is there.
  std::string pod;        // A UID with dashes; empty: none.

  bool operator==(const Belonging&) const = default;
};
// Its container has no id, but is a name itself.
inline bool is_named(const Belonging& belonging) {
  return belonging.runtime == "LXC" || belonging.runtime == "systemd-nspawn";
}

// Errors: as of /proc (process.h).
Expected<Belonging> belonging_of(pid_t pid);
// From the text of /proc/PID/cgroup (cgroups(7)): of version 2, or where all are of version 1, of
// the hierarchy of systemd, else of the longest path.
Belonging parse_cgroup(std::string_view text);
// From the path of a group.
Belonging belonging_in(std::string_view path);

}  // namespace clew::target
