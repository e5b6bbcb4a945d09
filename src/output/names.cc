// SPDX-License-Identifier: Apache-2.0
#include "output/names.h"

namespace clew::output {

using aggregate::ColumnRole;
using aggregate::ColumnType;
using aggregate::Unit;

const char* name_of(ColumnType type) {
  switch (type) {
    case ColumnType::Integer:
      return "integer";
    case ColumnType::Unsigned:
      return "unsigned";
    case ColumnType::Float:
      return "float";
    case ColumnType::String:
      return "string";
    case ColumnType::Boolean:
      return "boolean";
    case ColumnType::Address:
      return "address";
    case ColumnType::Time:
      return "time";
    case ColumnType::Enum:
      return "enum";
    case ColumnType::Histogram:
      return "histogram";
    case ColumnType::TopList:
      return "toplist";
    case ColumnType::Stack:
      return "stack";
    case ColumnType::Record:
      return "record";
  }
  return "";
}

const char* name_of(Unit unit) {
  switch (unit) {
    case Unit::None:
      return "";
    case Unit::Nanoseconds:
      return "ns";
  }
  return "";
}

const char* name_of(ColumnRole role) {
  switch (role) {
    case ColumnRole::Plain:
      return "plain";
    case ColumnRole::Key:
      return "key";
    case ColumnRole::Aggregate:
      return "aggregate";
    case ColumnRole::Cluster:
      return "cluster";
    case ColumnRole::Centre:
      return "centre";
  }
  return "";
}

}  // namespace clew::output
