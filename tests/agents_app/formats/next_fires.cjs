// Reads {library, lines, zone, spans: [[start, end]], most} and prints, for each line and span, the
// fires after the start and until the end, at most `most`.
const asked = JSON.parse(require("fs").readFileSync(0, "utf-8"));

function herdctl(cron, start) {
  const { CronExpressionParser } = require("cron-parser");
  const parsed = CronExpressionParser.parse(cron, { currentDate: start, tz: asked.zone });
  return () => parsed.next().toDate();
}

function actionLlama(cron, start) {
  const { Cron } = require("croner");
  const job = new Cron(cron, { timezone: asked.zone, paused: true });
  let last = start;
  return () => (last = job.nextRun(last));
}

function firesUntil(next, end, most) {
  const fires = [];
  for (let fire = next(); fire && fire <= end && fires.length < most; fire = next()) {
    fires.push(fire.getTime() / 1000);
  }
  return fires;
}

const nextFire = { "cron-parser": herdctl, croner: actionLlama }[asked.library];
const fires = asked.lines.map((cron) => asked.spans.map(([start, end]) =>
  firesUntil(nextFire(cron, new Date(start)), new Date(end), asked.most)));
console.log(JSON.stringify(fires));
