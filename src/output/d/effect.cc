// SPDX-License-Identifier: Apache-2.0
#include "output/d/effect.h"

namespace clew::output::d {

using query::d::Action;

Effect effect_of(Action action) {
  switch (action) {
    case Action::Trace:
    case Action::Stack:
    case Action::Ustack:
    case Action::Jstack:
    case Action::Sym:
    case Action::Mod:
    case Action::Uaddr:
    case Action::Ufunc:
    case Action::Umod:
    case Action::Usym:
      return Effect::Text;
    case Action::Tracemem:
      return Effect::Memory;
    case Action::Print:
      return Effect::Printed;
    case Action::Printf:
      return Effect::Formatted;
    case Action::Printa:
      return Effect::Aggregations;
    case Action::Clear:
    case Action::Trunc:
    case Action::Normalize:
    case Action::Denormalize:
      return Effect::Change;
    case Action::System:
    case Action::Freopen:
    case Action::Ftruncate:
    case Action::Setopt:
      return Effect::Host;
    case Action::None:
    case Action::Breakpoint:
    case Action::Chill:
    case Action::Commit:
    case Action::Copyout:
    case Action::Copyoutstr:
    case Action::Discard:
    case Action::Exit:
    case Action::Panic:
    case Action::Pcap:
    case Action::Raise:
    case Action::Speculate:
    case Action::Stop:
      return Effect::None;
  }
  return Effect::None;
}

bool has_values(Effect effect) {
  return effect == Effect::Text || effect == Effect::Memory || effect == Effect::Printed ||
         effect == Effect::Formatted;
}

Datum recorded(const query::d::RecordedAction& action, const query::d::RecordField& field,
               std::span<const uint8_t> record) {
  Datum datum = datum_of(field, record);
  if (datum.action == Action::None) datum.action = action.action;
  return datum;
}

bool is_executed(const query::d::RecordedAction& action, std::span<const uint8_t> record) {
  return action.flag_offset_bytes < record.size() && record[action.flag_offset_bytes] != 0;
}

}  // namespace clew::output::d
