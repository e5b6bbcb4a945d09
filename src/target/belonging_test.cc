// SPDX-License-Identifier: Apache-2.0
#include "target/belonging.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "target/container_names.h"

namespace clew::target {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kId = "4f9d3b1c0a7e5d2286b1c0ffee00aa55993377bb11dd22ee33ff44aa55bb66cc";
const std::string kOther = "00000000000000000000000000000000000000000000000000000000000000ab";
const std::string kPod = "8f2f6a0c-33d1-4b50-9e1f-5d4b6c7a8e90";

// Of version 2 of control groups.
Belonging at(const std::string& path) {
  return parse_cgroup("0::" + path + "\n");
}

struct Path {
  std::string path;
  std::string runtime;
};
class PathOf : public testing::TestWithParam<Path> {};

TEST_P(PathOf, AContainerHasItsId) {
  EXPECT_EQ(at(GetParam().path).container, kId) << GetParam().path;
  EXPECT_EQ(at(GetParam().path).runtime, GetParam().runtime) << GetParam().path;
}

INSTANTIATE_TEST_SUITE_P(
    Containers, PathOf,
    testing::Values(
        Path{"/system.slice/docker-" + kId + ".scope", "docker"},
        Path{"/docker/" + kId, "docker"},  //
        Path{"/machine.slice/libpod-" + kId + ".scope/container", "podman"},
        Path{"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId +
                 ".scope/container",
             "podman"},
        Path{"/libpod_parent/libpod-" + kId, "podman"},
        Path{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"
             "8f2f6a0c_33d1_4b50_9e1f_5d4b6c7a8e90.slice/cri-containerd-" +
                 kId + ".scope",
             "containerd"},
        Path{"/system.slice/containerd.service/kubepods-besteffort-pod8f2f6a0c.slice:"
             "cri-containerd:x/cri-containerd:" +
                 kId,
             "containerd"},
        Path{"/kubepods.slice/kubepods-pod8f2f6a0c_33d1_4b50_9e1f_5d4b6c7a8e90.slice/crio-" + kId +
                 ".scope",
             "CRI-O"},
        Path{"/kubepods/burstable/pod" + kPod + "/" + kId, ""},
        Path{"/user.slice/user-1000.slice/user@1000.service/user.slice/nerdctl-" + kId + ".scope",
             "containerd"},
        // One in another one.
        Path{"/system.slice/docker-" + kOther + ".scope/docker/" + kId, "docker"}));

TEST(Belonging, APodHasItsUid) {
  EXPECT_EQ(at("/kubepods/burstable/pod" + kPod + "/" + kId).pod, kPod);
  EXPECT_EQ(at("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"
               "8f2f6a0c_33d1_4b50_9e1f_5d4b6c7a8e90.slice/cri-containerd-" +
               kId + ".scope")
                .pod,
            kPod);
  EXPECT_EQ(at("/kubepods.slice/kubepods-pod0123456789abcdef0123456789abcdef.slice/crio-" + kId +
               ".scope")
                .pod,
            "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(at("/user.slice/podman/podium").pod, "");
}

TEST(Belonging, AUnitIsTheInnermostServiceOrScope) {
  EXPECT_EQ(at("/system.slice/nginx.service").unit, "nginx.service");
  EXPECT_EQ(at("/user.slice/user-1000.slice/user@1000.service/app.slice/editor.service").unit,
            "editor.service");
  EXPECT_EQ(at("/system.slice/system-getty.slice/getty@tty1.service").unit, "getty@tty1.service");
  EXPECT_EQ(at("/user.slice/user-0.slice/session-3.scope").unit, "session-3.scope");
  EXPECT_EQ(at("/").unit, "");
  EXPECT_EQ(at("/").cgroup, "/");
}

TEST(Belonging, NamesOfLxcAndNspawnAreTheirs) {
  EXPECT_EQ(at("/lxc.payload.web/system.slice/nginx.service").container, "web");
  EXPECT_EQ(at("/lxc/web").runtime, "LXC");
  EXPECT_EQ(at("/machine.slice/machine-web.scope/payload").container, "web");
  EXPECT_EQ(at("/machine.slice/systemd-nspawn@web.service/payload").runtime, "systemd-nspawn");
  EXPECT_EQ(at("/machine.slice/machine-qemu\\x2d1\\x2dvm.scope").container, "");
}

TEST(Belonging, MonitorsAreOutside) {
  EXPECT_EQ(at("/machine.slice/libpod-conmon-" + kId + ".scope").container, "");
  EXPECT_EQ(at("/system.slice/crio-conmon-" + kId + ".scope").container, "");
  EXPECT_EQ(at("/lxc.monitor.web").container, "");
}

TEST(Belonging, WhatOnlyLooksLikeAnIdIsNone) {
  EXPECT_EQ(at("/docker/" + kId.substr(1)).container, "");
  EXPECT_EQ(at("/docker/" + kId + "0").container, "");
  EXPECT_EQ(at("/docker-.scope").container, "");
  EXPECT_EQ(parse_cgroup("").container, "");
  EXPECT_EQ(parse_cgroup("\n::\n0:\nx").container, "");
}

// Of version 1 there is a path for each controller; with both, that of version 2 is empty.
TEST(Belonging, IsKnownByVersionOneToo) {
  const std::string text =
      "12:pids:/docker/" + kId + "\n11:cpu,cpuacct:/\n1:name=systemd:/docker/" + kId + "\n0::/\n";
  EXPECT_EQ(parse_cgroup(text).container, kId);
  EXPECT_EQ(parse_cgroup("4:memory:/a:b\n2:cpu:/\n").cgroup, "/a:b");
}

TEST(Belonging, OfAProcessIsWhatTheKernelSays) {
  const auto own = belonging_of(getpid());
  ASSERT_TRUE(own) << own.error().message;
  std::ifstream file("/proc/self/cgroup");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, ::testing::HasSubstr(own->cgroup));
  EXPECT_EQ(belonging_of(0x7ffffff).error().code, ErrorCode::NotFound);
}

// --- names ---------------------------------------------------------------------------------------

class ContainerNamesTest : public testing::Test {
 protected:
  ContainerNamesTest()
      : root_(fs::path(testing::TempDir()) / ("names." + std::to_string(getpid()))),
        names_(root_.string()) {
    fs::remove_all(root_);
  }
  ~ContainerNamesTest() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    const fs::path whole = root_ / path;
    fs::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }

  fs::path root_;
  ContainerNames names_;
  const Belonging belonging_ = at("/docker/" + kId);
};

TEST_F(ContainerNamesTest, OfDockerAreInItsFolder) {
  write("var/lib/docker/containers/" + kId + "/config.v2.json",
        R"({"ID": ")" + kId + R"(", "Name": "/web", "State": {"Running": true}})");
  EXPECT_THAT(names_.names_of(belonging_), ElementsAre("web"));
  EXPECT_EQ(names_.shown(belonging_), "web");
}

TEST_F(ContainerNamesTest, OfPodmanAreInItsStorage) {
  write("var/lib/containers/storage/overlay-containers/containers.json",
        R"([{"id": ")" + kOther + R"(", "names": ["db"]}, {"id": ")" + kId +
            R"(", "names": ["web", "front"]}])");
  EXPECT_THAT(names_.names_of(belonging_), ElementsAre("web", "front"));
}

TEST_F(ContainerNamesTest, OfKubernetesHaveTheirPod) {
  write("var/log/containers/shop-7c9f_prod_nginx-" + kId + ".log", "");
  write("var/log/containers/shop-7c9f_prod_side-" + kOther + ".log", "");
  EXPECT_THAT(names_.names_of(belonging_),
              ElementsAre("nginx", "shop-7c9f/nginx", "prod/shop-7c9f/nginx"));
}

TEST_F(ContainerNamesTest, OfContainerdAreInItsTasks) {
  write("run/containerd/io.containerd.runtime.v2.task/k8s.io/" + kId + "/config.json",
        R"({"annotations": {"io.kubernetes.cri.container-name": "nginx",
            "io.kubernetes.cri.sandbox-name": "shop-7c9f",
            "io.kubernetes.cri.sandbox-namespace": "prod"}})");
  EXPECT_THAT(names_.names_of(belonging_),
              ElementsAre("nginx", "shop-7c9f/nginx", "prod/shop-7c9f/nginx"));
}

TEST_F(ContainerNamesTest, AreTheIdWhereNobodySaysMore) {
  EXPECT_THAT(names_.names_of(belonging_), IsEmpty());
  EXPECT_EQ(names_.shown(belonging_), kId.substr(0, 12));
  EXPECT_EQ(names_.shown(at("/lxc.payload.web")), "web");
  EXPECT_EQ(names_.shown(at("/system.slice/nginx.service")), "");
}

TEST_F(ContainerNamesTest, WhatIsNoJsonNamesNothing) {
  write("var/lib/docker/containers/" + kId + "/config.v2.json", "{\"Name\": ");
  write("var/lib/containers/storage/vfs-containers/containers.json",
        "[1, {\"id\": 4}, {\"id\": \"" + kId + "\", \"names\": 3}]");
  write("var/log/containers/x-" + kId + ".log", "");
  write("run/containerd/io.containerd.runtime.v2.task/k8s.io/" + kId + "/config.json",
        "{\"annotations\": 7}");
  EXPECT_THAT(names_.names_of(belonging_), IsEmpty());
}

}  // namespace
}  // namespace clew::target
