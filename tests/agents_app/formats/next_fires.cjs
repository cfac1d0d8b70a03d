// Reads {library, lines, zone, starts, count} and prints, for each line and start, the next fires.
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

const nextFire = { "cron-parser": herdctl, croner: actionLlama }[asked.library];
const fires = asked.lines.map((cron) => asked.starts.map((start) => {
  const next = nextFire(cron, new Date(start));
  return Array.from({ length: asked.count }, () => next().getTime() / 1000);
}));
console.log(JSON.stringify(fires));
