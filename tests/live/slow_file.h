// SPDX-License-Identifier: Apache-2.0
// A copy of a program in a file system of our own, whose last bytes come when the test lets them:
// the kernel, which reads them while it begins the program, waits meanwhile. By FUSE
// (linux/fuse.h), in a mount name space of the calling thread and of what it starts from then on:
// it goes with them, however they end. The serving thread ends with the object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace clew::live {

class SlowFile {
 public:
  // Of the file's bytes, those from the page of offset `held_from` on are held.
  SlowFile(const std::string& original, uint64_t held_from);
  SlowFile(const SlowFile&) = delete;
  SlowFile& operator=(const SlowFile&) = delete;
  ~SlowFile();

  [[nodiscard]] bool is_there() const;  // Mounted; not without root and /dev/fuse.
  [[nodiscard]] const std::string& path() const { return path_; }
  // Until somebody reads what is held; false when nobody does.
  [[nodiscard]] bool wait_until_held();
  void release();

 private:
  class Server;
  std::string folder_;
  std::string path_;
  std::unique_ptr<Server> server_;
};

// Offset of the last bytes of the program's data, behind which its zeros begin: the kernel clears
// the rest of their page.
uint64_t end_of_data(const std::string& program);

}  // namespace clew::live
