// Loops that the workers of a team share out.
#pragma once

namespace tenon {

/// An attribute of a serial loop: it runs over this worker's share of a loop that all workers of
/// the team come to, in the same order. With rank r of size n in its bounds, and only there, it
/// runs over part r of n; so parts of any sizes can be made of it, and be given to whoever comes
/// first, as long as each is done once before the next barrier.
inline constexpr char kShareAttr[] = "share";

}  // namespace tenon
