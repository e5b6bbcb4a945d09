// SPDX-License-Identifier: Apache-2.0
// What people call containers, where their runtimes write it down: the id in the path of a control
// group (belonging.h) is nobody's name for it. Read from files alone; no runtime is asked.
//
//   docker       var/lib/docker/containers/ID/config.v2.json, Name
//   podman       var/lib/containers/storage/*-containers/containers.json, names (the storage of
//                containers/storage; of root)
//   Kubernetes   var/log/containers/POD_NAMESPACE_CONTAINER-ID.log, which a kubelet makes as links;
//                else, of containerd,
//                run/containerd/io.containerd.runtime.v2.task/*/ID/config.json, annotations
//
// Formats change and files may be missing or anybody's: what cannot be read names nothing.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "target/belonging.h"

namespace clew::target {

class ContainerNames {
 public:
  // `root`: where those folders lie.
  explicit ContainerNames(std::string root = "/") : root_(std::move(root)) {}

  // The shortest one first; of a container of Kubernetes its own name, POD/NAME and
  // NAMESPACE/POD/NAME. One whose id is its name has that. Empty: none is known.
  const std::vector<std::string>& names_of(const Belonging& belonging);
  // What to call it: the first name; else 12 digits of its id, as runtimes do; empty outside of
  // all.
  std::string shown(const Belonging& belonging);

 private:
  std::vector<std::string> read(std::string_view id);
  [[nodiscard]] std::vector<std::string> of_docker(std::string_view id) const;
  [[nodiscard]] std::vector<std::string> of_podman(std::string_view id) const;
  [[nodiscard]] std::vector<std::string> of_kubelet(std::string_view id) const;
  [[nodiscard]] std::vector<std::string> of_containerd(std::string_view id) const;

  std::string root_;
  std::map<std::string, std::vector<std::string>, std::less<>> known_;  // By id.
};

}  // namespace clew::target
