#include "runtime/core/pool.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/os.h"
#include "testing.h"

#if !defined(__has_feature)
#define __has_feature(x) 0
#endif

namespace tenon::runtime {
namespace {

// More than this machine may have, so that teams are oversubscribed and the sleeping paths run.
constexpr int32_t kThreads = 5;
const bool chosen = setenv("TENON_NUM_THREADS", "5", 1) == 0;

// Runs a lambda (rank, size, team) -> result on a team.
template <class F>
int32_t RunBody(F body, int32_t max_team = 0) {
  return tn_core_run_team(
      [](void* closure, int32_t rank, int32_t size, tn_team* team) {
        return (*static_cast<F*>(closure))(rank, size, team);
      },
      &body, max_team);
}

// Teams take idle workers only; those of the test before may still be on their way to idleness.
int32_t FullTeam() {
  for (int attempt = 0; attempt < 10000; ++attempt) {
    int32_t got = 0;
    RunBody([&](int32_t rank, int32_t size, tn_team*) { return rank == 0 ? (got = size, 0) : 0; });
    if (got == kThreads) return got;
    std::this_thread::yield();
  }
  return 0;
}

TEST(Pool, EveryRankRunsOnceOnItsOwnThread) {
  ASSERT_TRUE(chosen);
  ASSERT_EQ(FullTeam(), kThreads);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> runs(kThreads);
    std::vector<std::thread::id> threads(kThreads);
    int32_t team_size = 0;
    ASSERT_EQ(0, RunBody([&](int32_t rank, int32_t size, tn_team*) {
                runs[rank]++;
                threads[rank] = std::this_thread::get_id();
                if (rank == 0) team_size = size;
                return 0;
              }));
    EXPECT_EQ(threads[0], std::this_thread::get_id());
    threads.resize(team_size);
    EXPECT_EQ(std::set(threads.begin(), threads.end()).size(), static_cast<size_t>(team_size));
    for (int32_t i = 0; i < kThreads; ++i) EXPECT_EQ(runs[i], i < team_size ? 1 : 0);
  }
}

TEST(Pool, TeamIsBoundedByWhatIsAskedFor) {
  for (int32_t most = 1; most <= kThreads + 3; ++most) {
    int32_t got = 0;
    RunBody([&](int32_t rank, int32_t size, tn_team*) { return rank == 0 ? (got = size, 0) : 0; },
            most);
    EXPECT_GE(got, 1);
    EXPECT_LE(got, std::min(most, kThreads));
  }
  CallLimits two = {2, 0, INT64_MAX, nullptr};
  EXPECT_EQ(SetThreadLimits(&two), nullptr);
  int32_t got = 0;
  RunBody([&](int32_t rank, int32_t size, tn_team*) { return rank == 0 ? (got = size, 0) : 0; });
  EXPECT_LE(got, 2);
  EXPECT_EQ(SetThreadLimits(nullptr), &two);
}

// Every member must hear of it at the same barrier, or the others would wait for good.
TEST(Pool, StopsAtOneBarrierForAll) {
  for (int32_t most : {1, 2, kThreads}) {
    int32_t stop = 0;
    CallLimits limits = {most, 0, INT64_MAX, &stop};
    SetThreadLimits(&limits);
    std::vector<int> passed(kThreads, -1);
    EXPECT_EQ(RunBody([&](int32_t rank, int32_t, tn_team* team) {
                for (int i = 0;; ++i) {
                  passed[rank] = i;
                  if (rank == 0 && i == 100) __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
                  if (tn_core_barrier(team) != 0) return -1;
                }
              }),
              -1);
    EXPECT_STREQ(LastError(nullptr), "the call was stopped");
    for (int got : passed) EXPECT_TRUE(got == 100 || got == -1) << got;
    // One that is to stop does not begin; the next one does.
    EXPECT_EQ(RunBody([](int32_t, int32_t, tn_team*) { return 0; }), -1);
    SetThreadLimits(nullptr);
    EXPECT_EQ(RunBody([](int32_t, int32_t, tn_team*) { return 0; }), 0);
  }
}

TEST(Pool, StopsWhenTimeIsOver) {
  CallLimits limits = {0, NanosecondsNow() + 20'000'000, INT64_MAX, nullptr};
  SetThreadLimits(&limits);
  EXPECT_EQ(RunBody([](int32_t, int32_t, tn_team* team) {
              while (tn_core_barrier(team) == 0) continue;
              return -1;
            }),
            -1);
  EXPECT_STREQ(LastError(nullptr), "the call took longer than it may");
  SetThreadLimits(nullptr);
}

// A loop without a barrier behind it: parts that nobody did are told in the end, and a team of one
// has parts too where its call may end early.
TEST(Pool, StopsInsideOfALoop) {
  for (int32_t most : {1, 2, kThreads}) {
    int32_t stop = 0;
    CallLimits limits = {most, 0, INT64_MAX, &stop};
    SetThreadLimits(&limits);
    std::atomic<int64_t> done = 0;
    EXPECT_EQ(RunBody([&](int32_t, int32_t, tn_team* team) {
                tn_part part{};
                while (tn_core_take(team, 1000, &part)) {
                  done += 1000 * (part.rank + 1) / part.size - 1000 * part.rank / part.size;
                  if (done >= 200) __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
                }
                return 0;
              }),
              -1);
    EXPECT_STREQ(LastError(nullptr), "the call was stopped");
    EXPECT_LT(done, 1000);
    stop = 0;
    limits.cut = 0;
    done = 0;
    EXPECT_EQ(RunBody([&](int32_t, int32_t, tn_team* team) {
                tn_part part{};
                while (tn_core_take(team, 1000, &part))
                  done += 1000 * (part.rank + 1) / part.size - 1000 * part.rank / part.size;
                return 0;
              }),
              0);
    EXPECT_EQ(done, 1000);
    SetThreadLimits(nullptr);
  }
}

TEST(Pool, MemoryOfACallIsBounded) {
  CallLimits limits = {0, 0, 100, nullptr};
  SetThreadLimits(&limits);
  EXPECT_EQ(TakeBytes(60), 0);
  EXPECT_EQ(TakeBytes(60), -1);
  EXPECT_EQ(TakeBytes(40), 0);
  SetThreadLimits(nullptr);
  EXPECT_EQ(TakeBytes(INT64_MAX), 0);
}

// Every iteration is in one part, whoever takes it, in loop after loop with and without barriers
// between them.
TEST(Pool, LoopsAreSharedOut) {
  for (int64_t extent : {0, 1, 2, 7, 31, 32, 33, 1000}) {
    constexpr int kLoops = 50;
    std::vector<std::atomic<int>> done(static_cast<size_t>(kLoops * extent));
    for (int round = 0; round < 10; ++round) {
      RunBody([&](int32_t rank, int32_t, tn_team* team) {
        for (int64_t loop = 0; loop < kLoops; ++loop) {
          tn_part part{};
          while (tn_core_take(team, extent, &part)) {
            const int64_t first = extent * part.rank / part.size;
            const int64_t end = extent * (part.rank + 1) / part.size;
            for (int64_t i = first; i < end; ++i) ++done[static_cast<size_t>(loop * extent + i)];
          }
          if (rank == loop % kThreads) sched_yield();
          if (loop % 3 == 0) tn_core_barrier(team);
        }
        return 0;
      });
    }
    for (const std::atomic<int>& n : done) ASSERT_EQ(n, 10) << extent;
  }
}

// A worker that is done goes to another caller's team while its mates still look for parts of the
// last loop: they must take none of what it has there.
TEST(Pool, TeamsSideBySideShareOutTheirOwn) {
  constexpr int kCallers = 6, kCalls = 10000;
  constexpr int64_t kLoops = 2, kExtent = 8;
  std::atomic<int> wrong{0};
  const auto call = [&] {
    for (int c = 0; c < kCalls; ++c) {
      std::array<std::atomic<int>, kLoops * kExtent> done{};
      RunBody([&](int32_t, int32_t, tn_team* team) {
        for (int64_t loop = 0; loop < kLoops; ++loop) {
          tn_part part{};
          while (tn_core_take(team, kExtent, &part)) {
            const int64_t first = kExtent * part.rank / part.size;
            const int64_t end = kExtent * (part.rank + 1) / part.size;
            for (int64_t i = first; i < end; ++i) ++done[static_cast<size_t>(loop * kExtent + i)];
          }
          if (loop + 1 < kLoops) tn_core_barrier(team);
        }
        return 0;
      });
      for (const std::atomic<int>& n : done) wrong += n != 1;
    }
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) callers.emplace_back(call);
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
}

// A member that comes late finds that the others have done its share.
TEST(Pool, SharesOfWhoIsLateAreTaken) {
  std::atomic<int> taken{0};
  RunBody([&](int32_t rank, int32_t size, tn_team* team) {
    tn_part part{};
    if (rank == 0) {
      while (tn_core_take(team, 1000, &part))
        taken += 1000 * (part.rank + 1) / part.size - 1000 * part.rank / part.size;
      EXPECT_EQ(taken, 1000);
    }
    tn_core_barrier(team);
    if (rank != 0) EXPECT_EQ(tn_core_take(team, 1000, &part), 0) << size;
    return 0;
  });
  // Nobody to share with.
  tn_part part{};
  EXPECT_EQ(tn_core_take(nullptr, 5, &part), 1);
  EXPECT_EQ(part.rank, 0);
  EXPECT_EQ(part.size, 1);
  EXPECT_EQ(tn_core_take(nullptr, 5, &part), 0);
}

TEST(Pool, BarrierSeparatesPhases) {
  // Plain memory: under a thread sanitizer every missing edge is a report.
  constexpr int kPhases = 300;
  std::vector<int> values(kThreads);
  std::atomic<int> wrong{0};
  for (int round = 0; round < 20; ++round) {
    RunBody([&](int32_t rank, int32_t size, tn_team* team) {
      for (int phase = 0; phase < kPhases; ++phase) {
        values[rank] = phase;
        tn_core_barrier(team);
        for (int32_t i = 0; i < size; ++i) wrong += values[i] != phase;
        tn_core_barrier(team);
      }
      return 0;
    });
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Pool, BarrierWaitsForLateMembers) {
  // Late enough that the others sleep.
  std::atomic<int> arrived{0}, wrong{0};
  ASSERT_EQ(FullTeam(), kThreads);
  RunBody([&](int32_t rank, int32_t size, tn_team* team) {
    if (rank == size - 1) usleep(20000);
    arrived++;
    tn_core_barrier(team);
    wrong += arrived != size;
    return 0;
  });
  EXPECT_EQ(wrong, 0);
}

// Teams one after another, each with as many barriers as the one before: a member that is about to
// sleep while its signal is raised must not take the new count for the old one.
TEST(Pool, BarriersOfShortTeams) {
  const int rounds = __has_feature(thread_sanitizer) ? 1000 : 5000;
  std::atomic<int> arrived{0};
  for (int round = 0; round < rounds; ++round) {
    arrived = 0;
    int status = RunBody([&](int32_t, int32_t size, tn_team* team) {
      ++arrived;
      tn_core_barrier(team);
      return arrived == size ? 0 : 1;
    });
    ASSERT_EQ(status, 0) << "team " << round;
  }
}

TEST(Pool, CallerWaitsForLateWorkers) {
  int done = 0;
  ASSERT_EQ(FullTeam(), kThreads);
  RunBody([&](int32_t rank, int32_t size, tn_team*) {
    if (rank == size - 1) {
      usleep(20000);
      done = 1;
    }
    return 0;
  });
  EXPECT_EQ(done, 1);
}

TEST(Pool, WorkersWakeFromSleep) {
  for (int round = 0; round < 20; ++round) {
    usleep(2000);  // longer than they poll
    std::atomic<int> runs{0};
    int32_t team_size = 0;
    RunBody([&](int32_t rank, int32_t size, tn_team*) {
      runs++;
      return rank == 0 ? (team_size = size, 0) : 0;
    });
    EXPECT_EQ(runs, team_size);
  }
}

TEST(Pool, CallersAtOnceShareTheWorkers) {
  std::vector<std::thread> callers;
  std::atomic<int> active{0}, most{0}, wrong{0};
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        std::vector<int> runs(kThreads);
        int32_t team_size = 0;
        RunBody([&](int32_t rank, int32_t size, tn_team* team) {
          int now = ++active;
          int before = most;
          while (now > before && !most.compare_exchange_weak(before, now)) {
          }
          runs[rank]++;
          tn_core_barrier(team);
          active--;
          return rank == 0 ? (team_size = size, 0) : 0;
        });
        for (int32_t i = 0; i < kThreads; ++i) wrong += runs[i] != (i < team_size ? 1 : 0);
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(most, kThreads - 1 + 4);  // the workers and the callers
}

TEST(Pool, CallInsideABody) {
  std::atomic<int> inner{0};
  int32_t outer = 0;
  RunBody([&](int32_t rank, int32_t size, tn_team*) {
    if (rank == 0) outer = size;
    return RunBody([&](int32_t inner_rank, int32_t, tn_team* team) {
      tn_core_barrier(team);
      if (inner_rank == 0) inner++;
      return 0;
    });
  });
  EXPECT_EQ(inner, outer);
}

int32_t Raise(int32_t rank) {
  tn_msg_part parts[] = {{TN_MSG_TEXT, 0, {"rank "}}, {TN_MSG_INT, 0, {nullptr}}};
  parts[1].u.i = rank;
  return tn_core_raise("IndexError", parts, 2);
}

TEST(Pool, LowestFailingRankIsReported) {
  ASSERT_EQ(FullTeam(), kThreads);
  for (int32_t first = 0; first < kThreads; ++first) {
    int32_t size_got = 0;
    int32_t status = RunBody([&](int32_t rank, int32_t size, tn_team*) {
      if (rank == 0) size_got = size;
      return rank >= first ? Raise(rank) : 0;
    });
    if (first >= size_got) continue;
    EXPECT_EQ(status, -1);
    EXPECT_EQ(LastErrorText(), "IndexError: rank " + std::to_string(first));
  }
}

// Of this process, by the names that they give themselves.
int CountWorkers() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    std::getline(file, name);
    count += name.starts_with("tenon-");
  }
  return count;
}

TEST(Pool, IdleWorkersEndAndAreStartedAnew) {
  ASSERT_EQ(FullTeam(), kThreads);
  EXPECT_EQ(CountWorkers(), kThreads - 1);
  for (int i = 0; i < 200 && CountWorkers() > 0; ++i) usleep(100'000);
  EXPECT_EQ(CountWorkers(), 0);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(FullTeam(), kThreads);
    EXPECT_EQ(CountWorkers(), kThreads - 1);
    EndWorkers();  // as when the library goes
    EXPECT_EQ(CountWorkers(), 0);
  }
}

TEST(Pool, ForkedChildStartsWorkersOfItsOwn) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "thread sanitizers do not follow threads started after a fork";
#endif
  ASSERT_EQ(FullTeam(), kThreads);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(FullTeam() == kThreads ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(FullTeam(), kThreads);  // and the parent's are as they were
}

}  // namespace
}  // namespace tenon::runtime
