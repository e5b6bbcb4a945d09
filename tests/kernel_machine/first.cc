// SPDX-License-Identifier: Apache-2.0
// The first program of the test machine (tests/kernel_machine/run_machine): loads the kernel's
// modules that lie beside it, makes the host's file system the machine's own with everything
// written kept in memory, runs the command of /command there, says how it ended, and turns the
// machine off.
//
//     /modules/NN-name.ko    loaded in the order of their names
//     /command               the words of the command, each with a NUL behind it
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

namespace {

constexpr char kResults[] = "/dev/ttyS1";

void note(const std::string& what) {
  std::printf("machine: %s: %s\n", what.c_str(), std::strerror(errno));
  (void)std::fflush(stdout);
}

bool try_mount(const char* source, const std::string& place, const char* type,
               const char* options = nullptr, unsigned long flags = 0) {
  (void)mkdir(place.c_str(), 0755);
  return mount(source, place.c_str(), type, flags, options) == 0;
}

void mount_at(const char* source, const std::string& place, const char* type,
              const char* options = nullptr) {
  if (!try_mount(source, place, type, options)) note("mounting " + place);
}

void load_modules() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator("/modules"))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (syscall(SYS_finit_module, file, "", 0) != 0) note("loading " + path);
    (void)close(file);
  }
}

// The results' line passes bytes as they are.
void open_results() {
  const int line = open(kResults, O_RDWR | O_NOCTTY);
  if (line < 0) return note(kResults);
  termios settings{};
  (void)tcgetattr(line, &settings);
  cfmakeraw(&settings);
  (void)tcsetattr(line, TCSANOW, &settings);
  for (const int standard : {STDOUT_FILENO, STDERR_FILENO})
    (void)dup2(line, standard);
}

// The way that the kernel knows (run_machine, host_files).
void mount_host_files() {
  const char* of_9p = "trans=virtio,version=9p2000.L,cache=loose,msize=262144";
  if (try_mount("host", "/host", "9p", of_9p, MS_RDONLY)) return;
  if (!try_mount("host", "/host", "virtiofs", nullptr, MS_RDONLY)) note("mounting /host");
}

void enter_host_files() {
  mount_host_files();
  mount_at("memory", "/memory", "tmpfs");
  (void)mkdir("/memory/upper", 0755);
  (void)mkdir("/memory/work", 0755);
  mount_at("root", "/all", "overlay", "lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work");
  mount_at("dev", "/all/dev", "devtmpfs");
  mount_at("proc", "/all/proc", "proc");
  mount_at("sys", "/all/sys", "sysfs");
  mount_at("tracefs", "/all/sys/kernel/tracing", "tracefs");
  mount_at("debugfs", "/all/sys/kernel/debug", "debugfs");
  mount_at("tmp", "/all/tmp", "tmpfs");
  mount_at("run", "/all/run", "tmpfs");
  // Moved to the root, so that paths of the kernel are those of programs.
  const bool moved = chdir("/all") == 0 && mount(".", "/", nullptr, MS_MOVE, nullptr) == 0;
  if (!moved || chroot(".") != 0 || chdir("/") != 0) note("entering the host's files");
}

// Packets to itself are all the network that there is.
void start_network() {
  const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  (void)std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (ioctl(any, SIOCSIFFLAGS, &request) != 0) note("lo");
  (void)close(any);
}

std::vector<std::string> read_command() {
  std::ifstream file("/command", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<std::string> words;
  for (size_t at = 0; at < bytes.size(); at += words.back().size() + 1)
    words.emplace_back(bytes.c_str() + at);
  return words;
}

[[noreturn]] void execute(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::string path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  std::string home = "HOME=/root";
  std::string language = "LC_ALL=C.UTF-8";
  char* environment[] = {path.data(), home.data(), language.data(), nullptr};
  (void)setsid();
  (void)execve(arguments[0], arguments.data(), environment);
  note(words[0]);
  _exit(127);
}

// Orphans end up here, too.
int wait_for(pid_t child) {
  for (;;) {
    int status = 0;
    const pid_t ended = wait(&status);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) return -1;
  }
}

}  // namespace

int main() {
  mount_at("dev", "/dev", "devtmpfs");
  open_results();
  load_modules();
  const std::vector<std::string> words = read_command();
  enter_host_files();
  start_network();
  const pid_t child = words.empty() ? -1 : fork();
  if (child == 0) execute(words);
  const int status = wait_for(child);
  std::printf("\nmachine: exit status %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128);
  (void)std::fflush(stdout);
  (void)tcdrain(STDOUT_FILENO);
  sync();
  (void)reboot(RB_POWER_OFF);
  return 1;
}
