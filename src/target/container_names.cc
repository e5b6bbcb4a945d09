// SPDX-License-Identifier: Apache-2.0
#include "target/container_names.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

namespace clew::target {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kIdDigitsShown = 12;
constexpr uintmax_t kFileBytesMax = 64U << 20U;

// Nothing when it cannot be read, is too large, or is no JSON.
std::optional<json> read_json(const fs::path& path) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error || size > kFileBytesMax || !fs::is_regular_file(path, error)) return std::nullopt;
  std::ifstream file(path);
  json read = json::parse(file, nullptr, false);
  if (read.is_discarded()) return std::nullopt;
  return read;
}

std::string text_at(const json& from, const char* key) {
  if (!from.is_object()) return "";
  const auto found = from.find(key);
  return found != from.end() && found->is_string() ? found->get<std::string>() : "";
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator();
       at.increment(error))
    entries.push_back(at->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::vector<std::string> of_pod(const std::string& space, const std::string& pod,
                                const std::string& name) {
  if (space.empty() || pod.empty() || name.empty()) return {};
  return {name, pod + "/" + name, space + "/" + pod + "/" + name};
}

}  // namespace

// "/web": the slash is from when containers could be linked.
std::vector<std::string> ContainerNames::of_docker(std::string_view id) const {
  const auto config =
      read_json(fs::path(root_) / "var/lib/docker/containers" / id / "config.v2.json");
  std::string name = config ? text_at(*config, "Name") : "";
  if (name.starts_with('/')) name.erase(0, 1);
  if (name.empty()) return {};
  return {std::move(name)};
}

std::vector<std::string> ContainerNames::of_podman(std::string_view id) const {
  for (const fs::path& folder : entries_of(fs::path(root_) / "var/lib/containers/storage")) {
    if (!folder.filename().string().ends_with("-containers")) continue;
    const auto all = read_json(folder / "containers.json");
    if (!all || !all->is_array()) continue;
    for (const json& one : *all) {
      if (text_at(one, "id") != id) continue;
      const auto names = one.find("names");
      if (names == one.end() || !names->is_array()) return {};
      std::vector<std::string> found;
      for (const json& name : *names) {
        if (name.is_string()) found.push_back(name.get<std::string>());
      }
      return found;
    }
  }
  return {};
}

// None of the names has an underscore.
std::vector<std::string> ContainerNames::of_kubelet(std::string_view id) const {
  const std::string end = "-" + std::string(id) + ".log";
  for (const fs::path& entry : entries_of(fs::path(root_) / "var/log/containers")) {
    std::string name = entry.filename().string();
    if (!name.ends_with(end)) continue;
    name.resize(name.size() - end.size());
    const size_t first = name.find('_');
    const size_t second = first == std::string::npos ? first : name.find('_', first + 1);
    if (second == std::string::npos) continue;
    return of_pod(name.substr(first + 1, second - first - 1), name.substr(0, first),
                  name.substr(second + 1));
  }
  return {};
}

std::vector<std::string> ContainerNames::of_containerd(std::string_view id) const {
  const fs::path tasks = fs::path(root_) / "run/containerd/io.containerd.runtime.v2.task";
  for (const fs::path& space : entries_of(tasks)) {
    const auto config = read_json(space / id / "config.json");
    if (!config || !config->is_object()) continue;
    const auto annotations = config->find("annotations");
    if (annotations == config->end()) continue;
    auto of_pods = of_pod(text_at(*annotations, "io.kubernetes.cri.sandbox-namespace"),
                          text_at(*annotations, "io.kubernetes.cri.sandbox-name"),
                          text_at(*annotations, "io.kubernetes.cri.container-name"));
    if (!of_pods.empty()) return of_pods;
    const std::string name = text_at(*annotations, "nerdctl/name");
    if (!name.empty()) return {name};
  }
  return {};
}

std::vector<std::string> ContainerNames::read(std::string_view id) {
  for (const auto of : {&ContainerNames::of_docker, &ContainerNames::of_podman,
                        &ContainerNames::of_kubelet, &ContainerNames::of_containerd}) {
    std::vector<std::string> names = (this->*of)(id);
    if (!names.empty()) return names;
  }
  return {};
}

const std::vector<std::string>& ContainerNames::names_of(const Belonging& belonging) {
  const std::string& id = belonging.container;
  const auto known = known_.find(id);
  if (known != known_.end()) return known->second;
  std::vector<std::string> names;
  if (!id.empty()) names = is_named(belonging) ? std::vector{id} : read(id);
  return known_.emplace(id, std::move(names)).first->second;
}

std::string ContainerNames::shown(const Belonging& belonging) {
  const std::vector<std::string>& names = names_of(belonging);
  return names.empty() ? belonging.container.substr(0, kIdDigitsShown) : names.front();
}

}  // namespace clew::target
