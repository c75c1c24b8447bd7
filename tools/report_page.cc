// tenon report LOG -o FILE: a log of tuning as one page, which needs nothing else.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "console.h"
#include "support/atomic_file.h"
#include "tune/floor.h"
#include "tune/history.h"
#include "tune/log.h"
#include "verbs.h"

namespace tenon::tools {

namespace {

struct Arguments {
  std::string log, output = "report.html";
};

/// One kernel on one machine: what was tried, in the order in which it was.
struct Curve {
  tune::Circumstances circumstances;
  std::string kernel, kind, best;
  std::vector<double> best_so_far;  // seconds, of each trial; 0 before the first that worked
  int64_t failed = 0;
  double first_seconds = 0, best_seconds = 0, bound = 0;
};

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return out;
}

void Follow(const tune::Record& r, Curve* curve) {
  if (r.IsCopy()) return;
  if (r.outcome == tune::kOk && (r.leader || curve->best_seconds <= 0)) {
    if (curve->first_seconds <= 0) curve->first_seconds = r.seconds;
    curve->best_seconds = r.seconds;
    curve->best = r.Trace();
  }
  if (r.outcome != tune::kOk) ++curve->failed;
  curve->best_so_far.push_back(curve->best_seconds);
}

std::vector<Curve> CurvesOf(const tune::LogContents& contents) {
  std::vector<const tune::Record*> records;
  for (const tune::Record& r : contents.records) records.push_back(&r);
  const auto place = [&](const tune::Record* r) {
    const auto at = contents.places.find(r->id);
    return at == contents.places.end() ? int64_t{0} : at->second;
  };
  std::stable_sort(records.begin(), records.end(),
                   [&](const auto* a, const auto* b) { return place(a) < place(b); });
  std::map<std::tuple<std::string, std::string, int64_t, std::string>, Curve> curves;
  for (const tune::Record* r : records) {
    Curve& curve = curves[{r->machine, r->target, r->team, r->kernel}];
    curve.circumstances = {r->machine, r->target, r->team};
    curve.kernel = r->kernel;
    Follow(*r, &curve);
  }
  std::vector<Curve> out;
  for (auto& [key, curve] : curves) {
    const auto text = contents.kernels.find(curve.kernel);
    const Expected<Target> target = Target::Parse(curve.circumstances.target);
    if (text != contents.kernels.end() && target) {
      const Expected<tune::Floor> floor =
          tune::FloorOf(text->second, Machine::Of(*target), curve.circumstances.team, false);
      if (floor) {
        curve.kind = floor->kind;
        curve.bound = floor->Seconds();
      }
    }
    out.push_back(std::move(curve));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Curve& a, const Curve& b) { return a.best_seconds > b.best_seconds; });
  return out;
}

// The best so far over trials, as a part of the first.
std::string Picture(const Curve& curve) {
  constexpr double kWidth = 260, kHeight = 60;
  std::string points;
  const auto count = static_cast<double>(std::max<size_t>(1, curve.best_so_far.size() - 1));
  double highest = curve.first_seconds;
  for (const double s : curve.best_so_far) highest = std::max(highest, s);
  for (size_t i = 0; i < curve.best_so_far.size(); ++i) {
    const double s = curve.best_so_far[i];
    if (s <= 0) continue;
    points += fmt::format("{:.1f},{:.1f} ", static_cast<double>(i) / count * kWidth,
                          kHeight - s / highest * kHeight);
  }
  std::string floor;
  if (curve.bound > 0 && curve.bound < highest) {
    const double y = kHeight - curve.bound / highest * kHeight;
    floor = fmt::format(
        "<line class=\"bound\" x1=\"0\" x2=\"{:.0f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", kWidth, y, y);
  }
  return fmt::format(
      "<svg width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 -2 {0:.0f} {2:.0f}\"><polyline "
      "points=\"{3}\"/>{4}</svg>",
      kWidth, kHeight, kHeight + 4, points, floor);
}

constexpr const char* kHead =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Tuning</title>\n"
    "<style>body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}"
    "td,th{padding:.3em .8em;border-bottom:1px solid #ddd;text-align:right}"
    "td.text,th.text{text-align:left}code{font-size:12px}"
    "polyline{fill:none;stroke:#06c;stroke-width:1.5}"
    ".bound{stroke:#999;stroke-dasharray:4 3}</style></head><body>\n";

std::string RowOf(const Curve& c) {
  const bool works = c.best_seconds > 0;
  const std::string share =
      works && c.bound > 0 ? fmt::format("{:.0f} %", 100 * c.bound / c.best_seconds) : "–";
  return fmt::format(
      "<tr><td class=\"text\"><code>{}</code></td><td class=\"text\">{}</td><td>{}</td><td>{}</td>"
      "<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td "
      "class=\"text\"><code>{}</code></td>"
      "</tr>\n",
      c.kernel.substr(0, 12), Escaped(c.kind), c.best_so_far.size(), c.failed,
      works ? fmt::format("{:.2f}", 1e6 * c.first_seconds) : "–",
      works ? fmt::format("{:.2f}", 1e6 * c.best_seconds) : "–",
      c.bound > 0 ? fmt::format("{:.2f}", 1e6 * c.bound) : "–", share, Picture(c), Escaped(c.best));
}

std::string PageOf(const tune::LogContents& contents, const std::string& log) {
  std::string page = kHead;
  page += fmt::format(
      "<h1>Tuning: {}</h1>\n<p>{} records of {} kernels; {} that could not be read."
      " A curve is the best time so far, trial by trial; the dashed line is what a "
      "launch takes at least by the rates that the target is taken to have, and the share of "
      "the peak is that over the best time (a faster machine has more than all of it).</p>\n",
      Escaped(log), contents.records.size(), contents.kernels.size(), contents.skipped.size());
  std::string place;
  for (const Curve& c : CurvesOf(contents)) {
    const std::string here =
        fmt::format("{} · {} thread{} · machine {}", c.circumstances.target, c.circumstances.team,
                    c.circumstances.team == 1 ? "" : "s", c.circumstances.machine.substr(0, 12));
    if (here != place) {
      page += place.empty() ? "" : "</table>\n";
      page += fmt::format(
          "<h2>{}</h2>\n<table><tr><th class=\"text\">kernel</th><th class=\"text\">kind</th>"
          "<th>trials</th><th>failed</th><th>first µs</th><th>best µs</th><th>bound µs</th>"
          "<th>share of peak</th><th>progress</th><th class=\"text\">best</th></tr>\n",
          Escaped(here));
    }
    place = here;
    page += RowOf(c);
  }
  return page + (place.empty() ? "" : "</table>\n") + "</body></html>\n";
}

Expected<int> Write(const Arguments& args, const Common& common) {
  TN_ASSIGN_OR_RETURN(const tune::LogContents contents, tune::ReadLog(args.log));
  TN_RETURN_IF_ERROR(WriteFile(args.output, PageOf(contents, args.log)));
  Print("{}: {} records\n", args.output, contents.records.size());
  return contents.skipped.empty() ? kDone : Report(contents.skipped, common);
}

}  // namespace

Run AddReport(CLI::App& app, const Common& common) {
  auto args = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("report", "a log of tuning as one page of HTML");
  verb->add_option("log", args->log, "a log, or lines of JSON")->required();
  verb->add_option("-o,--output", args->output, "the page")->capture_default_str();
  return [args, &common] {
    Expected<int> status = Write(*args, common);
    return status ? *status : Report(InFile(std::move(status.errors()), args->log), common);
  };
}

}  // namespace tenon::tools
