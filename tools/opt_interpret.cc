#include "opt_interpret.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "ir/visit.h"
#include "support/strings.h"

namespace tenon {
namespace {

struct Assignment {
  std::string name;
  std::vector<double> values;
};

Expected<Assignment> ReadAssignment(const std::string& text) {
  const size_t equals = text.find('=');
  Assignment out{text.substr(0, equals), {}};
  bool good = equals != std::string::npos && equals > 0;
  for (const std::string& word :
       good ? Split(text.substr(equals + 1), ',') : std::vector<std::string>{}) {
    double value = 0;
    const char* end = word.data() + word.size();
    auto [rest, fault] = std::from_chars(word.data(), end, value);
    good &= fault == std::errc() && rest == end;
    out.values.push_back(value);
  }
  if (!good) return MakeError(fmt::format("expected name=number,number,… but got '{}'", text));
  return out;
}

// What callers call: where nothing is named, the one function that no other calls or launches.
Expected<Func> Choose(const Module& module, const std::string& name) {
  std::vector<std::string> names, roots;
  for (const auto& [key, func] : module.funcs) {
    names.push_back(key);
    bool called = false;
    for (const auto& [other, caller] : module.funcs) {
      PreOrder(caller->body, [&](const NodeRef& n) {
        const auto* call = As<CallFunc>(n);
        const auto* launch = As<Launch>(n);
        called |= (call && call->callee == key) || (launch && launch->kernel == key);
        return !called;
      });
    }
    if (!called) roots.push_back(key);
  }
  if (name.empty() && roots.size() == 1) return module.Find(roots[0]);
  if (Func f = module.Find(name)) return f;
  return MakeError(fmt::format("expected --function with one of {}{}", Join(names, ", "),
                               name.empty() ? "" : fmt::format(" but got '{}'", name)));
}

// Sizes by name; each is admitted by the dim's range.
Expected<DimValues> ReadDims(const PrimFunc& func, const std::vector<std::string>& texts) {
  DimValues out;
  for (const std::string& text : texts) {
    TN_ASSIGN_OR_RETURN(Assignment a, ReadAssignment(text));
    std::optional<DimRange> range;
    for (size_t i = 0; i < func.dims.size(); ++i) {
      if (func.dims[i]->name == a.name) range = func.dim_range(i);
    }
    if (!range) return MakeError(fmt::format("@{} has no dim '{}'", func.name, a.name));
    const auto size = static_cast<int64_t>(a.values[0]);
    const bool fits = size >= range->lo && (range->hi < 0 || size <= range->hi) &&
                      (size - range->lo) % range->step == 0;
    if (a.values.size() != 1 || static_cast<double>(size) != a.values[0] || !fits) {
      return MakeError(fmt::format("'{}' is no size of dim '{}'", text, a.name));
    }
    out[a.name] = size;
  }
  for (const Var& dim : func.dims) {
    if (out.count(dim->name)) continue;
    return MakeError(fmt::format("dim '{0}' needs a size: give it with --dim {0}=…", dim->name));
  }
  return out;
}

Status Set(const PrimFunc& func, const Assignment& a, std::vector<InterpArg>* args) {
  for (size_t i = 0; i < func.scalars.size(); ++i) {
    if (func.scalars[i]->name != a.name || func.scalars[i]->dtype.IsHandle()) continue;
    if (a.values.size() != 1) return MakeError(fmt::format("'{}' is one number", a.name));
    InterpArg& arg = (*args)[func.buffers.size() + i];
    arg = func.scalars[i]->dtype.IsFloat() ? InterpArg::Float(a.values[0])
                                           : InterpArg::Int(static_cast<int64_t>(a.values[0]));
    return Ok();
  }
  for (size_t i = 0; i < func.buffers.size(); ++i) {
    if (func.buffers[i]->name != a.name) continue;
    const auto wanted = static_cast<size_t>((*args)[i].num_elements());
    std::vector<double> values = a.values;
    if (values.size() == 1) values.resize(wanted, values[0]);
    if (values.size() != wanted) {
      return MakeError(
          fmt::format("'{}' has {} elements but {} are given", a.name, wanted, values.size()));
    }
    (*args)[i] = InterpArg::Tensor((*args)[i].dtype, (*args)[i].shape, values);
    return Ok();
  }
  return MakeError(fmt::format("@{} has no parameter '{}'", func.name, a.name));
}

std::string Number(const InterpArg& arg, int64_t i) {
  if (arg.dtype.IsBool()) return arg.Get(i) != 0 ? "true" : "false";
  const double value = arg.Get(i);
  const bool narrow = arg.dtype.IsFloat() && arg.dtype.bits <= 32;
  return narrow ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
}

// Nested in brackets, one row of the last axis a line.
std::string Elements(const InterpArg& arg) {
  const std::vector<int64_t>& shape = arg.shape;
  if (arg.num_elements() == 0) return "no elements";
  if (shape.empty()) return Number(arg, 0);
  std::string out = std::string(shape.size(), '[');
  for (int64_t i = 0; i < arg.num_elements(); ++i) {
    int64_t below = 1;
    size_t closing = 0;
    for (size_t d = shape.size(); i > 0 && d > 0 && i % (below * shape[d - 1]) == 0; --d) {
      below *= shape[d - 1];
      ++closing;
    }
    if (closing > 0) {
      out += std::string(closing, ']') + ",\n" + std::string(2 + shape.size() - closing, ' ') +
             std::string(closing, '[');
    } else if (i > 0) {
      out += ", ";
    }
    out += Number(arg, i);
  }
  return out + std::string(shape.size(), ']');
}

std::string Describe(const PrimFunc& func, const std::vector<InterpArg>& args) {
  std::string out;
  const size_t inputs = func.buffers.size() - static_cast<size_t>(func.num_outputs);
  for (size_t i = 0; i < func.buffers.size(); ++i) {
    std::vector<std::string> extents;
    for (int64_t d : args[i].shape) extents.push_back(std::to_string(d));
    out += fmt::format("{}{}: {}[{}] =\n  {}\n", i < inputs ? "" : "out ", func.buffers[i]->name,
                       args[i].dtype.ToString(), Join(extents, ", "), Elements(args[i]));
  }
  for (size_t i = 0; i < func.scalars.size(); ++i) {
    const DType type = func.scalars[i]->dtype;
    const InterpScalar& s = args[func.buffers.size() + i].scalar;
    if (type.IsHandle()) continue;  // memory of the function's own
    out += fmt::format("{}: {} = {}\n", func.scalars[i]->name, type.ToString(),
                       type.IsFloat() ? fmt::format("{}", s.f) : fmt::format("{}", s.i));
  }
  return out;
}

}  // namespace

Expected<std::string> InterpretText(const Module& module, const InterpretOptions& options) {
  TN_ASSIGN_OR_RETURN(Func func, Choose(module, options.function));
  InterpOptions run;
  TN_ASSIGN_OR_RETURN(run.dims, ReadDims(*func, options.dims));
  TN_ASSIGN_OR_RETURN(std::vector<InterpArg> args,
                      SmallIntegerArgs(*func, run.dims, options.seed, options.team));
  for (const std::string& text : options.values) {
    TN_ASSIGN_OR_RETURN(Assignment a, ReadAssignment(text));
    TN_RETURN_IF_ERROR(Set(*func, a, &args));
  }
  run.team_size = options.team;
  TN_RETURN_IF_ERROR(InterpretOrders(module, func->name, args, run));
  return Describe(*func, args);
}

}  // namespace tenon
