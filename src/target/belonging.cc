// SPDX-License-Identifier: Apache-2.0
#include "target/belonging.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "target/proc_file.h"

namespace clew::target {
namespace {

constexpr size_t kIdDigits = 64;  // SHA-256, or as many random digits.

bool is_id(std::string_view text) {
  return text.size() == kIdDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    if (end != 0) parts.push_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

// What is between them; nothing when the text has another begin or end.
std::optional<std::string_view> between(std::string_view text, std::string_view begin,
                                        std::string_view end) {
  const bool fits =
      text.size() > begin.size() + end.size() && text.starts_with(begin) && text.ends_with(end);
  if (!fits) return std::nullopt;
  text.remove_prefix(begin.size());
  text.remove_suffix(end.size());
  return text;
}

struct IdForm {
  std::string_view begin;
  std::string_view runtime;
};
constexpr std::array<IdForm, 7> kIdForms = {{{"docker-", "docker"},
                                             {"libpod-", "podman"},
                                             {"cri-containerd-", "containerd"},
                                             {"cri-containerd:", "containerd"},
                                             {"nerdctl-", "containerd"},
                                             {"crio-", "CRI-O"},
                                             {"", ""}}};

// A part that holds an id, with or without ".scope".
bool take_id(std::string_view part, std::string_view parent, Belonging& found) {
  if (const auto scope = between(part, "", ".scope")) part = *scope;
  for (const IdForm& form : kIdForms) {
    if (!part.starts_with(form.begin) || !is_id(part.substr(form.begin.size()))) continue;
    found.container = part.substr(form.begin.size());
    found.runtime = form.begin.empty() && parent == "docker" ? "docker" : form.runtime;
    return true;
  }
  return false;
}

// A part that holds a name.
void take_name(std::string_view part, std::string_view parent, Belonging& found) {
  const auto take = [&found](std::string_view name, std::string_view runtime) {
    found.container = name;
    found.runtime = runtime;
  };
  if (const auto name = between(part, "lxc.payload.", "")) return take(*name, "LXC");
  if (parent == "lxc") return take(part, "LXC");
  // libvirt's virtual machines are scopes of that kind, too: no process of the host is in one.
  const auto machine = between(part, "machine-", ".scope");
  if (machine && !machine->starts_with("qemu\\x2d")) return take(*machine, "systemd-nspawn");
  if (const auto name = between(part, "systemd-nspawn@", ".service"))
    return take(*name, "systemd-nspawn");
}

// "pod8a3b…", or "kubepods-burstable-pod8a3b_….slice".
std::string pod_in(std::string_view part, bool is_within) {
  constexpr std::string_view kPod = "pod";
  constexpr size_t kUuid = 36;
  if (const auto slice = between(part, "kubepods", ".slice")) {
    part = *slice;
    const size_t at = part.rfind("-pod");
    if (at == std::string_view::npos) return "";
    part.remove_prefix(at + 1);
  } else if (!is_within) {
    return "";
  }
  // Of a static pod it is a hash of 32 digits.
  if (!part.starts_with(kPod) || part.size() < kPod.size() + kIdDigits / 2) return "";
  std::string uid(part.substr(kPod.size()));
  if (uid.size() > kUuid) return "";
  std::replace(uid.begin(), uid.end(), '_', '-');
  return uid;
}

}  // namespace

Belonging belonging_in(std::string_view path) {
  Belonging found;
  found.cgroup = path;
  std::string_view parent;
  bool is_within_kubepods = false;
  for (const std::string_view part : parts_of(path)) {
    if (part.ends_with(".service") || part.ends_with(".scope")) found.unit = part;
    std::string pod = pod_in(part, is_within_kubepods);
    if (!pod.empty()) found.pod = std::move(pod);
    if (!take_id(part, parent, found)) take_name(part, parent, found);
    is_within_kubepods = is_within_kubepods || part.starts_with("kubepods");
    parent = part;
  }
  return found;
}

Belonging parse_cgroup(std::string_view text) {
  std::string_view best;
  std::string_view of_systemd;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    // "hierarchy:controllers:path": names of controllers have no colon, paths may.
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    const bool is_version_2 = line.starts_with("0::");
    if (is_version_2 && path != "/") return belonging_in(path);
    if (controllers == "name=systemd") of_systemd = path;
    if (path.size() > best.size()) best = path;
  }
  return belonging_in(of_systemd.size() > 1 ? of_systemd : best);
}

Expected<Belonging> belonging_of(pid_t pid) {
  return parse_cgroup(CLEW_TRY(read_proc_file(pid, "cgroup")));
}

}  // namespace clew::target
