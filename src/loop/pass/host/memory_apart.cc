// Pairs of arguments grow with the square of their number, so nothing is written per pair. The
// checks of each argument leave its address, its size and its name in arrays, and one function
// sorts the arguments by their first address and walks over them once:
//
//   argument   a        y        z                 sorted     a      z      y
//   memory     0..64    96..128  48..80            reach      64 ──► 48 < 64: z overlaps a
//
// Whatever starts before the end of something that started earlier overlaps it; the furthest end so
// far tells, once among all arguments and once among outputs alone, since inputs may share memory
// with each other. What has no elements meets nobody.

#include "loop/pass/host/memory_apart.h"

#include "loop/parse.h"
#include "loop/pass/packed_abi.h"
#include "support/check.h"

namespace tenon {

using namespace packed;  // NOLINT(google-build-using-namespace): its words, in a file made of them

namespace {

// Sorted by Shell's method, whose steps shrink to 5/11 each time: short, and in place. `sorted` has
// where an argument begins, and which it is; `reach` the furthest end among all arguments and whose
// it is, then the same among outputs.
constexpr char kText[] = R"(
func @host.find_overlap<n: 1..>(out sorted: i64[n, 2], out found: i64[2], slots: handle, facts: handle, inputs: i64) kind device {
  alloc step: index[1] in local
  alloc hole: index[1] in local
  alloc reach: i64[4] in local
  for place in 0..n {
    sorted[place, 0] = reinterpret<i64>(ptr_load<handle>(slots, place * 8))
    sorted[place, 1] = i64(place)
  }
  step[0] = n
  while step[0] > 1 {
    step[0] = select(step[0] == 2, 1, step[0] * 5 / 11)
    let gap = step[0]
    for i in gap..n {
      let start = sorted[i, 0]
      let moved = sorted[i, 1]
      hole[0] = i
      while gap <= hole[0] && start < sorted[max(hole[0] - gap, 0), 0] {
        sorted[hole[0], 0] = sorted[hole[0] - gap, 0]
        sorted[hole[0], 1] = sorted[hole[0] - gap, 1]
        hole[0] = hole[0] - gap
      }
      sorted[hole[0], 0] = start
      sorted[hole[0], 1] = moved
    }
  }
  found[0] = -1i64
  found[1] = -1i64
  for part in 0..4 { reach[part] = -1i64 }
  for next in 0..n {
    let start = sorted[next, 0]
    let who = sorted[next, 1]
    let end = start + ptr_load<i64>(facts, index(who) * 16)
    if start < end {
      let earlier = select(inputs <= who, 0, 2)
      if 0i64 <= reach[earlier + 1] && start < reach[earlier] {
        found[0] = max(who, reach[earlier + 1])
        found[1] = min(who, reach[earlier + 1])
      }
      if reach[1] < 0i64 || reach[0] < end {
        reach[0] = end
        reach[1] = who
      }
      if inputs <= who && (reach[3] < 0i64 || reach[2] < end) {
        reach[2] = end
        reach[3] = who
      }
    }
  }
}
)";

Buffer Numbers(const char* name, std::vector<Expr> shape) {
  return BufferNode::Make(name, DType::Int(64), std::move(shape), Scope::kLocal, nullptr, {},
                          kSlotBytes);
}

// if 0 <= found[0]: fail, with the names of arguments found[0] and found[1].
Stmt Report(const Expr& facts, const Buffer& found,
            const std::function<Stmt(Expr output, Expr other)>& fail) {
  auto name = [&](int64_t which) {
    const Expr number = CastExpr::Make(DType::Index(), Load::Make(found, {IndexConst(which)}));
    return Call::Make(Intrinsic::kPtrLoad, {facts, number * kFactBytes + kFactName},
                      DType::Handle());
  };
  return If::Make(Le(I64(0), Load::Make(found, {IndexConst(0)})), fail(name(0), name(1)));
}

}  // namespace

Func FindOverlapFunc(const TargetRef& target) {
  const Expected<Func> parsed = ParseFunc(kText, kFindOverlap);
  TN_CHECK(parsed, "{}", ToString(parsed.errors()));
  PrimFunc fields(**parsed);
  fields.target = target;
  return PrimFunc::Make(std::move(fields));
}

void StoreFact(const Expr& fact, const Expr& bytes, const Expr& name, StmtList* list) {
  list->Add(StoreAt(fact, 0, bytes));
  list->Add(StoreAt(fact, kFactName, name));
}

void CheckApart(size_t count, size_t num_outputs, const Expr& slots, const Expr& facts,
                const std::function<Stmt(Expr output, Expr other)>& fail, StmtList* list) {
  const auto n = static_cast<int64_t>(count), inputs = static_cast<int64_t>(count - num_outputs);
  const Buffer sorted = Numbers("sorted", {IndexConst(n), IndexConst(2)});
  const Buffer found = Numbers("found", {IndexConst(2)});
  StmtList own;
  for (const Buffer& b : {sorted, found}) {
    own.Open([b](Stmt body) { return Alloc::Make(b, std::move(body)); });
  }
  own.Add(CallFunc::Make(kFindOverlap, {Whole(sorted), Whole(found)},
                         {IndexConst(n), slots, facts, I64(inputs)}));
  own.Add(Report(facts, found, fail));
  list->Add(own.Close());
}

}  // namespace tenon
