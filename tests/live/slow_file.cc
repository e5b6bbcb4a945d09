// SPDX-License-Identifier: Apache-2.0
#include "live/slow_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <span>
#include <thread>

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "live/child.h"

namespace clew::live {
namespace {

constexpr const char* kName = "slow";
constexpr uint64_t kFileNode = FUSE_ROOT_ID + 1;
constexpr uint64_t kPageBytes = 4096;
constexpr size_t kRequestBytes = size_t{1} << 20;

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

class SlowFile::Server {
 public:
  Server(FileDescriptor device, std::string contents, uint64_t held_from)
      : device_(std::move(device)),
        contents_(std::move(contents)),
        held_from_(held_from / kPageBytes * kPageBytes),
        thread_([this] { serve(); }) {}
  // Only when it is no longer mounted.
  void join() { thread_.join(); }

  bool wait_until_held() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [this] { return !held_.empty(); });
  }

  void release() {
    const std::lock_guard lock(mutex_);
    is_released_ = true;
    for (const Read& read : held_)
      answer_read(read);
    held_.clear();
  }

 private:
  struct Read {
    uint64_t unique = 0;
    uint64_t offset = 0;
    uint32_t size = 0;
  };

  void serve() {
    std::vector<uint8_t> request(kRequestBytes);
    while (true) {
      const ssize_t size = read(device_.get(), request.data(), request.size());
      // ENOENT: a request was taken back. ENODEV, and others: no longer mounted.
      const bool goes_on = size >= 0 || errno == EINTR || errno == EAGAIN || errno == ENOENT;
      if (!goes_on) return;
      if (size < static_cast<ssize_t>(sizeof(fuse_in_header))) continue;
      handle(std::span(request).first(static_cast<size_t>(size)));
    }
  }

  void handle(std::span<const uint8_t> request) {
    fuse_in_header header = {};
    std::memcpy(&header, request.data(), sizeof header);
    const uint8_t* const body = request.data() + sizeof header;
    switch (header.opcode) {
      case FUSE_INIT: {
        fuse_init_out out = {};  // Nothing is read ahead.
        out.major = FUSE_KERNEL_VERSION;
        out.minor = FUSE_KERNEL_MINOR_VERSION;
        out.max_write = kPageBytes;
        return answer(header.unique, out);
      }
      case FUSE_LOOKUP: {
        if (std::strcmp(reinterpret_cast<const char*>(body), kName) != 0)
          return fail(header.unique, ENOENT);
        fuse_entry_out out = {};
        out.nodeid = kFileNode;
        out.attr = attributes(kFileNode);
        return answer(header.unique, out);
      }
      case FUSE_GETATTR: {
        fuse_attr_out out = {};
        out.attr = attributes(header.nodeid);
        return answer(header.unique, out);
      }
      case FUSE_OPEN: {
        fuse_open_out out = {};
        out.open_flags = FOPEN_KEEP_CACHE;  // Else opening waits for pages that are held.
        return answer(header.unique, out);
      }
      case FUSE_READ: {
        fuse_read_in in = {};
        std::memcpy(&in, body, sizeof in);
        return read_or_hold({.unique = header.unique, .offset = in.offset, .size = in.size});
      }
      case FUSE_FLUSH:
      case FUSE_RELEASE:
        return fail(header.unique, 0);
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:
        return;
      default:
        return fail(header.unique, ENOSYS);
    }
  }

  void read_or_hold(const Read& read) {
    const std::lock_guard lock(mutex_);
    if (is_released_ || read.offset + read.size <= held_from_) return answer_read(read);
    held_.push_back(read);
    changed_.notify_all();
  }

  void answer_read(const Read& read) {
    const uint64_t begin = std::min<uint64_t>(read.offset, contents_.size());
    const uint64_t size = std::min<uint64_t>(read.size, contents_.size() - begin);
    write_answer(read.unique, 0, std::span(contents_).subspan(begin, size));
  }

  template <typename T>
  void answer(uint64_t unique, const T& out) {
    write_answer(unique, 0, std::span(reinterpret_cast<const char*>(&out), sizeof out));
  }

  void fail(uint64_t unique, int error) { write_answer(unique, error, {}); }

  void write_answer(uint64_t unique, int error, std::span<const char> body) {
    fuse_out_header header = {};
    header.len = static_cast<uint32_t>(sizeof header + body.size());
    header.error = -error;
    header.unique = unique;
    const std::array<iovec, 2> parts = {iovec{&header, sizeof header},
                                        iovec{const_cast<char*>(body.data()), body.size()}};
    // Whoever asked may be gone.
    [[maybe_unused]] const ssize_t written = writev(device_.get(), parts.data(), parts.size());
  }

  [[nodiscard]] fuse_attr attributes(uint64_t node) const {
    fuse_attr attr = {};
    attr.ino = node;
    attr.nlink = 1;
    attr.mode = node == kFileNode ? S_IFREG | 0755 : S_IFDIR | 0755;
    attr.size = node == kFileNode ? contents_.size() : 0;
    attr.blocks = (attr.size + 511) / 512;
    attr.blksize = kPageBytes;
    return attr;
  }

  FileDescriptor device_;
  std::string contents_;
  uint64_t held_from_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Read> held_;
  bool is_released_ = false;
  std::thread thread_;
};

SlowFile::SlowFile(const std::string& original, uint64_t held_from)
    : folder_(testing::TempDir() + fmt::format("clew-slow-{}", getpid())),
      path_(folder_ + "/" + kName) {
  FileDescriptor device(open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!device.valid()) return;
  const bool has_own_mounts =
      unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  if (!has_own_mounts || mkdir(folder_.c_str(), 0755) != 0) return;
  const std::string options =
      fmt::format("fd={},rootmode=40755,user_id=0,group_id=0,allow_other", device.get());
  if (mount("clew-test", folder_.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    rmdir(folder_.c_str());
    return;
  }
  server_ = std::make_unique<Server>(std::move(device), contents_of(original), held_from);
}

SlowFile::~SlowFile() {
  if (!is_there()) return;
  release();
  umount2(folder_.c_str(), MNT_FORCE | MNT_DETACH);
  server_->join();
  rmdir(folder_.c_str());
}

bool SlowFile::is_there() const {
  return server_ != nullptr;
}
bool SlowFile::wait_until_held() {
  return server_->wait_until_held();
}
void SlowFile::release() {
  server_->release();
}

uint64_t end_of_data(const std::string& program) {
  const std::string contents = contents_of(program);
  Elf64_Ehdr header = {};
  std::memcpy(&header, contents.data(), sizeof header);
  uint64_t end = 0;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment = {};
    std::memcpy(&segment, contents.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD && segment.p_memsz > segment.p_filesz)
      end = segment.p_offset + segment.p_filesz;
  }
  return end;
}

}  // namespace clew::live
