// The page: controls of parameters and loading, four tests as curves, and what may be taken away.

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};
const byId = (id) => document.getElementById(id);
const about = JSON.parse(byId("about").textContent);

/** What a test may be told; a creep stress has its value from the tension test. */
const LOADING = {
  strain: { label: "Strain of the tension test", value: 0.02, least: 0.001, most: 0.1 },
  shear: { label: "Angle of the shear test", value: 0.02, least: 0.001, most: 0.1 },
  amplitude: { label: "Strain amplitude of the cycles", value: 0.01, least: 0.001, most: 0.05 },
  cycles: { label: "Number of cycles", value: 3, least: 1, most: 20, step: 1, limit: 500 },
  ...(about.time && {
    duration: { label: "Time of a test or a cycle", value: 10, least: 0.1, most: 1000, logarithmic: true },
    creepStress: { label: "Stress of the creep test", value: 0, least: 0, most: 1 },
    creepTime: { label: "Time of the creep test", value: 100, least: 1, most: 10000, logarithmic: true },
  }),
};

const UNIAXIAL = { 1: 0, 2: 0, 3: 0, 4: 0, 5: 0 };
/** A hundred steps to a value, or so many between turning points. */
const ramp = (times, at) => Array.from({ length: times + 1 }, (_, i) => at(i / times, i));
const columnOf = (tensor, component) => (row) => tensor(row)[component] / FACTORS[component];
const strainOf = (row) => row.strain, stressOf = (row) => row.values[about.stress];

const TESTS = {
  tension: {
    title: "Tension",
    steps: (to) => ramp(100, (s) => ({ time: s * (to.duration ?? 1), strain: { 0: s * to.strain }, stress: UNIAXIAL })),
    x: columnOf(strainOf, 0), y: columnOf(stressOf, 0), xLabel: "strain xx", yLabel: "stress xx",
  },
  shear: {
    title: "Simple shear",
    steps: (to) => ramp(100, (s) => ({ time: s * (to.duration ?? 1), strain: { 5: (s * to.shear) / 2 } })),
    x: (row) => 2 * columnOf(strainOf, 5)(row), y: columnOf(stressOf, 5), xLabel: "angle", yLabel: "stress xy",
  },
  cycles: {
    title: "Cycles",
    steps: (to) =>
      ramp(80 * to.cycles, (_, i) => {
        const quarter = i / 20, turn = Math.floor((quarter + 1) / 2), sign = turn % 2 ? -1 : 1;
        const strain = to.amplitude * sign * (quarter - 2 * turn);
        return { time: (i / 80) * (to.duration ?? 1), strain: { 0: strain }, stress: UNIAXIAL };
      }),
    x: columnOf(strainOf, 0), y: columnOf(stressOf, 0), xLabel: "strain xx", yLabel: "stress xx",
  },
  ...(about.time && {
    creep: {
      title: "Creep",
      // The stress is there after a hundredth of the time.
      steps: (to) => {
        const held = ramp(100, (s) => ({ time: to.creepTime * (0.01 + 0.99 * s), stress: { 0: to.creepStress, ...UNIAXIAL } }));
        const loaded = ramp(10, (s) => ({ time: 0.01 * to.creepTime * s, stress: { 0: s * to.creepStress, ...UNIAXIAL } }));
        return [...loaded, ...held.slice(1)];
      },
      x: (row) => row.time, y: columnOf(strainOf, 0), xLabel: "time", yLabel: "strain xx",
    },
  }),
};

/** A slider beside a number, which are one value, a number up to the limit. Returns what reads it, or sets it. */
function control(place, id, { label, value, least, most, step, logarithmic, limit = Number.MAX_VALUE }, changed) {
  const to = (x) => (logarithmic ? Math.log10(x) : x), from = (x) => (logarithmic ? 10 ** x : x);
  const slider = element("input", { type: "range", id: `${id}-slider` });
  const number = element("input", { type: "number", id, step: step ?? "any", "aria-label": `${label}, as a number` });
  let now = value;
  const range = (low, high) => {
    slider.min = to(low);
    slider.max = to(high);
    slider.step = step ?? (to(high) - to(low)) / 200;
  };
  const show = () => {
    number.value = now;
    if (document.activeElement !== slider) slider.value = to(now);
    slider.setAttribute("aria-valuetext", shown(now));
  };
  const take = (given) => {
    if (!Number.isFinite(given) || (logarithmic && given <= 0) || (step === 1 && given < 1)) return show();
    now = Math.min(step === 1 ? Math.round(given) : given, limit);
    show();
    changed();
  };
  slider.addEventListener("input", () => take(from(Number(slider.value))));
  number.addEventListener("change", () => take(number.value === "" ? NaN : Number(number.value)));
  range(least, most);
  slider.value = to(value);
  place.append(element("div", { class: "control" }, element("label", { for: slider.id }, label), slider, number));
  show();
  return { get: () => now, set: (given, high) => ((now = given), range(least, high ?? most), (slider.value = to(given)), show()) };
}

const copied = async (text, what) => {
  const told = () => `${what} copied.`, refused = (error) => `The browser did not copy: ${error.message}`;
  byId("told").textContent = await Promise.resolve()
    .then(() => navigator.clipboard.writeText(text)).then(told, refused);
};

/** The rows of a test as CSV, with the tensor's own components. */
function csv(rows) {
  const names = ["time", ...COMPONENTS.map((c) => `${about.strain}.${c}`)];
  const add = (name) => (names.includes(name) ? add(`${name} (output)`) : names.push(name));
  for (const output of about.outputs)
    for (let i = 0; i < output.size; ++i)
      add(output.type === "SR2" ? `${output.name}.${COMPONENTS[i]}` : output.size > 1 ? `${output.name}.${i}` : output.name);
  const own = (type, values) => values.map((value, i) => (type === "SR2" ? value / FACTORS[i] : value));
  const lines = rows.map((row) =>
    [row.time, ...own("SR2", row.strain), ...about.outputs.flatMap((v) => own(v.type, row.values[v.name]))].join(","));
  const quoted = names.map((name) => (/[",\r\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name));
  return [quoted.join(","), ...lines, ""].join("\n");
}

function download(text, name) {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function start() {
  const law = await Law.open(byId("code").textContent, about);
  const results = {};
  const parameters = byName([]), loading = {}, forces = byName([]);
  const read = (controls) => byName(Object.entries(controls).map(([name, c]) => [name, c.get()]));

  function run() {
    const begun = performance.now();
    for (const [name, part] of Object.entries(law.parameter))
      for (let i = 0; i < part.length; ++i) part[i] = parameters[`${name}.${i}`].get();
    for (const [id, test] of Object.entries(TESTS)) {
      const { rows, problem } = law.drive(test.steps(read(loading)), read(forces));
      results[id] = rows;
      // A law may have no number at rest.
      const points = rows.map((row) => [test.x(row), test.y(row)]).filter((point) => point.every(Number.isFinite));
      const [x, y] = [0, 1].map((of) => points.map((point) => point[of]));
      const end = `${test.title}: ${test.yLabel} ${shown(y.at(-1))} at ${test.xLabel} ${shown(x.at(-1))}`;
      draw(byId(`${id}-plot`), { ...test, x, y, told: `${end}, greatest ${shown(Math.max(...y))}, least ${shown(Math.min(...y))}` });
      byId(`${id}-end`).textContent = problem ? `${problem}.` : `${end}.`;
      byId(`${id}-end`).classList.toggle("problem", problem !== "");
    }
    byId("time").textContent = `All curves in ${(performance.now() - begun).toFixed(0)} ms.`;
  }
  // Once for all that happens before the page is drawn again.
  let waits = false;
  const changed = () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => ((waits = false), run()));
  };

  for (const { name, values } of about.parameters)
    values.forEach((value, i) => {
      const label = values.length > 1 ? `${name}, component ${i + 1}` : name;
      const [least, most] = value ? [0.2 * value, 2 * value].sort((a, b) => a - b) : [-1, 1];
      const id = `parameter-${name}-${i}`;
      parameters[`${name}.${i}`] = control(byId("parameters"), id, { label, value, least, most }, changed);
    });
  for (const { name, ...of } of about.forces)
    forces[name] = control(byId("loading"), `force-${name}`, { label: name, ...of }, changed);
  for (const [name, of] of Object.entries(LOADING)) loading[name] = control(byId("loading"), name, of, changed);

  for (const [id, { title }] of Object.entries(TESTS)) {
    const save = element("button", { type: "button", id: `${id}-csv`, "aria-label": `Download ${title} as CSV` }, "Download CSV");
    save.addEventListener("click", () => download(csv(results[id]), `${about.name}-${id}.csv`));
    const copy = element("button", { type: "button", id: `${id}-copy`, "aria-label": `Copy ${title} as CSV` }, "Copy values");
    copy.addEventListener("click", () => copied(csv(results[id]), `The values of ${title}`));
    const image = svg("svg", { id: `${id}-plot`, role: "img" });
    byId("plots").append(
      element("section", { "aria-labelledby": `${id}-title` }, element("h2", { id: `${id}-title` }, title), image,
        element("p", { id: `${id}-end` }), element("p", {}, save, " ", copy)));
  }
  byId("copy").addEventListener("click", () => copied(JSON.stringify(read(parameters), null, 1), "The parameters"));
  byId("parameters").hidden = !about.parameters.length;
  byId("reset").addEventListener("click", () => {
    for (const { name, values } of about.parameters) values.forEach((value, i) => parameters[`${name}.${i}`].set(value));
    changed();
  });

  if (about.time) {
    // A stress that the law bears: four fifths of what the tension test ends with.
    for (const [name, part] of Object.entries(law.parameter))
      for (let i = 0; i < part.length; ++i) part[i] = parameters[`${name}.${i}`].get();
    const { rows } = law.drive(TESTS.tension.steps(read(loading)), read(forces));
    const greatest = Math.abs(rows.map(TESTS.tension.y).at(-1)) || 1;
    loading.creepStress.set(Number((0.8 * greatest).toPrecision(2)), Number((1.5 * greatest).toPrecision(2)));
  }
  run();
  performance.mark("first plot");
  globalThis.neml2 = { law, results, csv };
}

start().catch((error) => (byId("told").textContent = `The law does not run in this browser: ${error.message}`));
