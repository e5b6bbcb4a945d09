// SPDX-License-Identifier: Apache-2.0
// Names of files: d_path(), cwd, root. A path is made from its end, component by component, across
// mounts up to the process's root directory.
#include "runtime/kernel/text.h"
#include "runtime/kernel/walk.h"

namespace clew::runtime::kernel {
namespace {

inline constexpr uint64_t kComponentsMax = 128;
inline constexpr uint64_t kPathBytesMax = 4096;
inline constexpr uint64_t kNameBytesMax = 255;

struct Place {
  uint64_t mount;  // struct vfsmount
  uint64_t entry;  // struct dentry
};

[[gnu::always_inline]] inline Place place_of(uint64_t path) {
  return {read_pointer(path + number(d_n_path_mnt)), read_pointer(path + number(d_n_path_dentry))};
}

[[gnu::always_inline]] inline uint64_t current_directories() {
  return read_pointer(current_task_address() + number(d_n_task_fs));
}

[[gnu::always_inline]] inline Place root_directory() {
  return place_of(current_directories() + number(d_n_fs_root));
}

// Puts "/name" in front of what begins at `begin`; gives the new begin, or 0 without room.
[[gnu::always_inline]] inline uint64_t put_component(MachineWindow* w, uint64_t begin,
                                                     uint64_t entry) {
  const uint64_t name = entry + number(d_n_dentry_name);  // struct qstr: hash, length, text
  uint64_t length = read_pointer(name) >> 32;
  if (length > kNameBytesMax) length = kNameBytesMax;
  if (begin < length + 1) return 0;
  length = forgotten(w, length);
  const uint64_t place = forgotten(w, begin - length - 1);
  w->scratch[masked(place, 0xFFF)] = '/';
  copy_kernel(w->scratch + masked(place + 1, 0xFFF), masked(length, 0xFF),
              pointer(read_pointer(name + 8)));
  return place;
}

[[gnu::always_inline]] inline bool is_same(const Place& a, const Place& b) {
  return a.mount == b.mount && a.entry == b.entry;
}

// The name of `path` below `root`.
[[gnu::always_inline]] inline uint64_t write_path(MachineWindow* w, uint64_t dst, uint64_t path,
                                                  const Place& root) {
  Place here = place_of(path);
  uint64_t begin = zero(w) + kPathBytesMax - 1;
  for (uint64_t i = zero(w); i < kComponentsMax && go_on(); ++i) {
    if (is_same(here, root) || here.entry == 0) break;
    const uint64_t mount = here.mount - number(d_n_mount_mnt);
    const uint64_t above = read_pointer(here.entry + number(d_n_dentry_parent));
    if (here.entry == read_pointer(here.mount + number(d_n_mnt_root))) {
      const uint64_t upper = read_pointer(mount + number(d_n_mount_parent));
      if (upper == mount || upper == 0) break;
      here.entry = read_pointer(mount + number(d_n_mount_point));
      here.mount = upper + number(d_n_mount_mnt);
      continue;
    }
    if (above == here.entry) break;
    const uint64_t place = put_component(w, begin, here.entry);
    if (place == 0) break;
    begin = place;
    here.entry = above;
  }
  begin = forgotten(w, begin);
  const uint64_t size = forgotten(w, kPathBytesMax - 1 - begin);
  if (size == 0) {
    set_byte(w, dst, '/');
    return finish(w, dst, 1);
  }
  const uint64_t limit = string_bytes() - 1;
  copy_kernel(at(w, dst), size < limit ? size : limit, w->scratch + masked(begin, 0xFFF));
  return finish(w, dst, size);
}

}  // namespace

extern "C" {

uint64_t d_path(MachineWindow* w, uint64_t dst, uint64_t address) {
  uint64_t mount = 0;
  if (helper<113>(&mount, uint64_t{8}, pointer(address)) != 0) {
    return fail(w, MachineFault::BadAddress, address);
  }
  return write_path(w, dst, address, root_directory());
}

uint64_t d_builtin_cwd(MachineWindow* w, uint64_t, uint64_t dst) {
  return write_path(w, dst, current_directories() + number(d_n_fs_pwd), root_directory());
}

uint64_t d_builtin_root(MachineWindow* w, uint64_t, uint64_t dst) {
  // From the top of all mounts: of a process in a chroot, the directory that it takes for "/".
  return write_path(w, dst, current_directories() + number(d_n_fs_root), {0, 0});
}

}  // extern "C"

}  // namespace clew::runtime::kernel
