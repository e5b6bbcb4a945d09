// SPDX-License-Identifier: Apache-2.0
// Dynamic variables (abi/machine/dynamic.h) and the bytes of globals.
#include "abi/machine/dynamic.h"
#include "runtime/kernel/thread.h"

namespace clew::runtime::kernel {
namespace {

[[gnu::always_inline]] inline uint64_t table_bytes() {
  return number(d_n_dynamic_buckets) * abi::dynamic_bucket_bytes(number(d_n_dynamic_entry_bytes));
}

[[gnu::always_inline]] inline uint64_t in_table(uint64_t offset) {
  return bounded(offset, table_bytes());
}

// The table with what is looked for but its key.
template <typename Self>
class TableOf : public abi::DynamicTable<Self> {
 public:
  [[gnu::always_inline]] TableOf(MachineWindow* w, uint64_t identity)
      : w_(w), identity_(identity) {}

  [[gnu::always_inline]] uint64_t zero() const { return kernel::zero(w_); }
  [[gnu::always_inline]] uint64_t buckets() const { return number(d_n_dynamic_buckets); }
  [[gnu::always_inline]] uint64_t entry_bytes() const { return number(d_n_dynamic_entry_bytes); }
  [[gnu::always_inline]] uint64_t key_bytes_max() const { return number(d_n_dynamic_key_bytes); }
  [[gnu::always_inline]] uint64_t identity() const { return identity_; }
  [[gnu::always_inline]] uint64_t way_offset(uint64_t way) const {
    return times(masked(way, abi::kMachineWays - 1), entry_bytes());
  }
  [[gnu::always_inline]] uint64_t& word(uint64_t offset, uint64_t index) const {
    return *reinterpret_cast<uint64_t*>(dynamic() + offset + masked(index * 8, 0x1FF8));
  }

 protected:
  MachineWindow* w_;
  uint64_t identity_;
};

// The key is the key area of the window, with its variable's number and the thread.
class Table : public TableOf<Table> {
 public:
  [[gnu::always_inline]] Table(MachineWindow* w, uint64_t identity, uint64_t key_words,
                               uint64_t bucket)
      : TableOf(w, identity), key_words_(key_words), bucket_(bucket) {}

  [[gnu::always_inline]] uint64_t key_words() const { return key_words_; }
  [[gnu::always_inline]] uint64_t bucket() const { return bucket_; }
  [[gnu::always_inline]] uint64_t home_way() const { return 0; }
  [[gnu::always_inline]] uint64_t key_word(uint64_t index) const {
    return *reinterpret_cast<const uint64_t*>(reinterpret_cast<const uint8_t*>(w_) +
                                              abi::kMachineKeyOffset + masked(index * 8, 0xFF8));
  }
  [[gnu::always_inline]] abi::MachineFound find() const;
  [[gnu::always_inline]] abi::MachineFound claim_new() const;

 private:
  uint64_t key_words_;
  uint64_t bucket_;
};

// A variable without a key (self->x): so little is to be compared that nothing is called.
class ThreadTable : public TableOf<ThreadTable> {
 public:
  [[gnu::always_inline]] ThreadTable(MachineWindow* w, uint64_t identity) : TableOf(w, identity) {
    bucket_ = in_table(find_bucket());  // Older verifiers lose its bounds in the product.
  }

  [[gnu::always_inline]] uint64_t key_words() const { return 0; }
  [[gnu::always_inline]] uint64_t key_word(uint64_t) const { return 0; }
  [[gnu::always_inline]] uint64_t bucket() const { return bucket_; }
  [[gnu::always_inline]] uint64_t home_way() const { return hashed_way(); }
  [[gnu::always_inline]] abi::MachineFound find() const { return find_here(); }
  [[gnu::always_inline]] abi::MachineFound claim_new() const { return claim_new_here(); }

  [[gnu::always_inline]] uint64_t& value(const abi::MachineFound& found) const {
    return word(value_offset(found), 0);
  }

 private:
  uint64_t bucket_ = 0;
};

// A found entry's state comes back in the window.
[[gnu::always_inline]] inline uint64_t give(MachineWindow* w, const abi::MachineFound& found) {
  w->header.second_result = found.state;
  return found.offset;
}

}  // namespace

extern "C" {

[[gnu::noinline]] uint64_t d_dynamic_bucket(MachineWindow* w, uint64_t identity,
                                            uint64_t key_words) {
  return Table(w, identity, key_words, 0).find_bucket();
}

[[gnu::noinline]] uint64_t d_dynamic_find(MachineWindow* w, uint64_t identity, uint64_t key_words,
                                          uint64_t bucket) {
  return give(w, Table(w, identity, key_words, in_table(bucket)).find_here());
}

[[gnu::noinline]] uint64_t d_dynamic_claim(MachineWindow* w, uint64_t identity, uint64_t key_words,
                                           uint64_t bucket) {
  return give(w, Table(w, identity, key_words, in_table(bucket)).claim_new_here());
}

}  // extern "C"

namespace {

[[gnu::always_inline]] inline abi::MachineFound Table::find() const {
  const uint64_t offset = d_dynamic_find(w_, identity_, key_words_, bucket_);
  return {in_table(offset), w_->header.second_result};
}

[[gnu::always_inline]] inline abi::MachineFound Table::claim_new() const {
  const uint64_t offset = d_dynamic_claim(w_, identity_, key_words_, bucket_);
  return {in_table(offset), w_->header.second_result};
}

[[gnu::always_inline]] inline const abi::MachineVariable& descriptor(uint64_t variable) {
  return variables()[index_below(variable, number(d_n_variables))];
}

// Threads of one number in two name spaces, and a number that is used again: as the kernel has it,
// one thread is one thread id of the first name space. The idle threads all have number 0: each CPU
// has one.
inline constexpr uint64_t kIdleThreads = uint64_t{1} << 31;

[[gnu::always_inline]] inline uint64_t current_thread(MachineWindow* w) {
  const uint64_t thread = firing_thread(w) & 0xFFFF'FFFF;
  return thread != 0 ? thread : kIdleThreads | processor();
}

[[gnu::always_inline]] inline uint64_t identity_of(MachineWindow* w, const abi::MachineVariable& d,
                                                   uint64_t variable) {
  const uint64_t thread = d.is_thread != 0 ? current_thread(w) : 0;
  return (variable + 1) << 32 | thread;
}

[[gnu::always_inline]] inline Table table_of(MachineWindow* w, uint64_t variable) {
  const abi::MachineVariable& d = descriptor(variable);
  const uint64_t identity = identity_of(w, d, variable);
  const uint64_t key_words = d.key_bytes / 8;
  return Table(w, identity, key_words, in_table(d_dynamic_bucket(w, identity, key_words)));
}

[[gnu::always_inline]] inline bool is_own(const abi::MachineVariable& d) {
  return d.key_bytes == 0 && d.is_thread != 0;
}

[[gnu::always_inline]] inline uint64_t drop(MachineWindow* w) {
  abi::add_word(shared().losses.dynamic, 1);
  return fail(w, MachineFault::Dropped, 0);
}

// Behind the globals are kCopyBytesMax bytes that nobody reads.
[[gnu::always_inline]] inline bool is_global(uint64_t offset, uint64_t size) {
  return offset < number(d_n_globals_bytes) && size <= kCopyBytesMax;
}

}  // namespace

extern "C" {

// Variables with keys, and the others where their entry is not at home.
[[gnu::noinline]] uint64_t d_element_load(MachineWindow* w, uint64_t variable) {
  const abi::MachineVariable& d = descriptor(variable);
  if (is_own(d)) return ThreadTable(w, identity_of(w, d, variable)).load();
  return table_of(w, variable).load();
}

[[gnu::noinline]] uint64_t d_element_store(MachineWindow* w, uint64_t variable, uint64_t value) {
  const abi::MachineVariable& d = descriptor(variable);
  const auto put = [value](uint64_t offset) {
    *reinterpret_cast<uint64_t*>(dynamic() + offset) = value;
  };
  const bool stored = is_own(d) ? ThreadTable(w, identity_of(w, d, variable)).store(put)
                                : table_of(w, variable).store(put);
  return stored ? 0 : drop(w);
}

[[gnu::noinline]] uint64_t d_element_delete(MachineWindow* w, uint64_t variable) {
  const abi::MachineVariable& d = descriptor(variable);
  if (is_own(d)) {
    ThreadTable(w, identity_of(w, d, variable)).remove();
  } else {
    table_of(w, variable).remove();
  }
  return 0;
}

uint64_t d_variable_load(MachineWindow* w, uint64_t variable) {
  const abi::MachineVariable& d = descriptor(variable);
  if (!is_own(d)) return d_element_load(w, variable);
  const ThreadTable table(w, identity_of(w, d, variable));
  const abi::MachineFound found = table.find_home();
  if (found.offset == 0) return d_element_load(w, variable);
  if (abi::state_of(found.state) == abi::MachineEntryState::Free) return 0;
  const uint64_t value = abi::load_word(table.value(found));
  const bool is_live = abi::state_of(found.state) == abi::MachineEntryState::Live;
  return is_live && table.is_unchanged(found) ? value : d_element_load(w, variable);
}

uint64_t d_variable_store(MachineWindow* w, uint64_t variable, uint64_t value) {
  const abi::MachineVariable& d = descriptor(variable);
  if (!is_own(d)) return d_element_store(w, variable, value);
  const ThreadTable table(w, identity_of(w, d, variable));
  const abi::MachineFound found = table.find_home();
  if (found.offset == 0 || !table.take_home(found)) return d_element_store(w, variable, value);
  table.value(found) = value;
  table.publish(found);
  return 0;
}

uint64_t d_variable_delete(MachineWindow* w, uint64_t variable) {
  const abi::MachineVariable& d = descriptor(variable);
  if (!is_own(d)) return d_element_delete(w, variable);
  const ThreadTable table(w, identity_of(w, d, variable));
  const abi::MachineFound found = table.find_home();
  const bool is_free = abi::state_of(found.state) == abi::MachineEntryState::Free;
  if (found.offset != 0 && is_free) return 0;
  const bool is_live = abi::state_of(found.state) == abi::MachineEntryState::Live;
  if (found.offset != 0 && is_live && table.set_free(found)) return 0;
  return d_element_delete(w, variable);
}

uint64_t d_variable_load_bytes(MachineWindow* w, uint64_t variable, uint64_t dst) {
  const uint64_t size = descriptor(variable).value_bytes;
  const bool loaded = table_of(w, variable).load_bytes([w, dst, size](uint64_t offset) {
    copy_own(at(w, dst), size, dynamic() + offset);
  });
  if (!loaded) clear(w, dst, size);
  return loaded ? 1 : 0;
}

uint64_t d_variable_store_bytes(MachineWindow* w, uint64_t variable, uint64_t src) {
  const uint64_t size = descriptor(variable).value_bytes;
  const bool stored = table_of(w, variable).store([w, src, size](uint64_t offset) {
    copy_own(dynamic() + offset, size, at(w, src));
  });
  return stored ? 0 : drop(w);
}

uint64_t d_global_load_bytes(MachineWindow* w, uint64_t dst, uint64_t offset, uint64_t size) {
  if (is_global(offset, size)) copy_own(at(w, dst), size, globals() + offset);
  return 0;
}

uint64_t d_global_store_bytes(MachineWindow* w, uint64_t offset, uint64_t src, uint64_t size) {
  if (is_global(offset, size)) copy_own(globals() + offset, size, at(w, src));
  return 0;
}

}  // extern "C"

}  // namespace clew::runtime::kernel
