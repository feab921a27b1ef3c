// A law, and a point of it that is driven as neml2_capi.drive() drives one: the same numbers to round-off.

// As neml2_capi.driver has them, in control.py and history.py.
const TOLERANCE = 1e-9, LEAST_STRAIN = 1e-3, ITERATIONS = 25, HALVINGS = 6, DECREASE = 0.25, CUTS = 8, MOMENT = 1e-9;
const ROOT = Math.SQRT2;
// Components of a symmetric tensor in Mandel's notation, and what each is of the tensor's own.
const COMPONENTS = ["xx", "yy", "zz", "yz", "xz", "xy"];
const FACTORS = [1, 1, 1, ROOT, ROOT, ROOT];

/** Solve a small system by elimination with rows exchanged; the right-hand side becomes the solution, or NaN. */
function solve(matrix, right) {
  const n = right.length;
  for (let i = 0; i < n; ++i) {
    let pivot = i;
    for (let j = i + 1; j < n; ++j) if (Math.abs(matrix[j][i]) > Math.abs(matrix[pivot][i])) pivot = j;
    [matrix[i], matrix[pivot]] = [matrix[pivot], matrix[i]];
    [right[i], right[pivot]] = [right[pivot], right[i]];
    for (let j = i + 1; j < n; ++j) {
      const factor = matrix[j][i] / matrix[i][i];
      for (let k = i; k < n; ++k) matrix[j][k] -= factor * matrix[i][k];
      right[j] -= factor * right[i];
    }
  }
  for (let i = n - 1; i >= 0; --i) {
    for (let k = i + 1; k < n; ++k) right[i] -= matrix[i][k] * right[k];
    right[i] /= matrix[i][i];
  }
  return right.every(Number.isFinite) ? right : right.fill(NaN);
}

/** A map by names of variables, which may be __proto__ or constructor: it inherits nothing. */
const byName = (pairs) => Object.setPrototypeOf(Object.fromEntries(pairs), null);

const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

/** What is wrong with a point, by its status. */
const PROBLEMS = {
  1: "A result is not a number", 2: "The law did not converge", 3: "A system of the law is singular",
  4: "A value is beyond its physical bounds",
};

class Law {
  static async open(code, about) {
    const bytes = Uint8Array.from(atob(code), (letter) => letter.charCodeAt(0));
    const { instance } = await WebAssembly.instantiate(bytes, {});
    return new Law(instance.exports, about);
  }

  constructor(exports, about) {
    this.update = exports.update;
    this.about = about;
    const array = (which, size) => new Float64Array(exports.memory.buffer, exports.place(which), size);
    const total = (variables) => variables.reduce((sum, variable) => sum + variable.size, 0);
    const rows = total(about.outputs), columns = total(about.inputs);
    this.inputs = array(0, columns);
    this.parameters = array(1, total(about.parameters));
    this.outputs = array(2, rows);
    const tangent = array(3, rows * columns);
    const views = (variables, whole) =>
      byName(variables.map((v) => [v.name, whole.subarray(v.offset, v.offset + v.size)]));
    this.input = views(about.inputs, this.inputs);
    this.output = views(about.outputs, this.outputs);
    this.parameter = views(about.parameters, this.parameters);
    const stress = about.outputs.find((v) => v.name === about.stress).offset;
    const strain = about.inputs.find((v) => v.name === about.strain).offset;
    this.stiffness = (i, j) => tangent[(stress + i) * columns + strain + j];
  }

  /** Drive a point. A step has its `time`, and numbers by component: `strain` is given, or `stress` is prescribed.
   *  Forces are scalars by name. Returns a row for each step that was made, and what is wrong if one failed. */
  drive(steps, forces = {}) {
    const { about, input, output } = this;
    const load = ({ time, strain = {} }) => {
      if (about.time) input[about.time][0] = time;
      for (const i in strain) input[about.strain][i] = strain[i] * FACTORS[i];
    };
    const age = (pairs) => pairs.forEach(([from, to]) => input[to].set(output[from] ?? input[from]));
    this.inputs.fill(0);
    this.outputs.fill(0);
    for (const [name, value] of Object.entries(forces)) input[name][0] = value;
    load(steps[0]);
    age([...about.history].reverse()); // before the first time everything is constant
    this.last = null;
    const rows = [];
    for (const [i, step] of steps.entries()) {
      load(step);
      const rests = !i && !about.solved;
      const values = rests ? this.rest(steps) : output;
      const problem = rests ? "" : this.increment(step.stress ?? {});
      if (problem) return { rows, problem: `${problem} at the time ${step.time}` };
      rows.push({
        time: step.time,
        strain: Array.from(input[about.strain]),
        values: byName(about.outputs.map(({ name }) => [name, Array.from(values[name])])),
      });
      if (i) age(about.history);
    }
    return { rows, problem: "" };
  }

  /** Values before anything happens: states are zero; others are evaluated, after a moment if rest has no number. */
  rest([first, second = first]) {
    const { about, input, output } = this;
    const begun = (name) => (about.states.includes(name) ? 0 : NaN);
    const found = about.outputs.map(({ name, size }) => [name, Array(size).fill(begun(name))]);
    for (const part of [0, MOMENT]) {
      if (about.time) input[about.time][0] = first.time + part * (second.time - first.time);
      this.update();
      for (const [name, row] of found) row.forEach((x, i) => (row[i] = Number.isFinite(x) ? x : output[name][i]));
    }
    return byName(found);
  }

  /** Find strains for the stresses that are prescribed, by Newton's method from where the last tangent points. */
  increment(prescribed) {
    const strain = this.input[this.about.strain], stress = this.output[this.about.stress];
    const free = Object.keys(prescribed).map(Number), targets = free.map((i) => prescribed[i] * FACTORS[i]);
    if (!free.length) {
      const status = this.update();
      return status > 1 || !Number.isFinite(largest(stress)) ? PROBLEMS[status] : "";
    }
    const square = (tangent) => free.map((i) => free.map((j) => tangent[i][j]));
    let tangent = null, good = null, from = null, most = Infinity, cuts = 0;
    if (this.last) {
      const last = this.last;
      const change = strain.map((value, j) => (free.includes(j) ? 0 : value - last.strain[j]));
      tangent = last.tangent;
      good = strain.slice();
      const missing = free.map(
        (i, k) => targets[k] - last.stress[i] - tangent[i].reduce((sum, value, j) => sum + value * change[j], 0));
      const step = solve(square(tangent), missing);
      free.forEach((i, k) => {
        good[i] = last.strain[i];
        strain[i] = last.strain[i] + (step[k] || 0);
      });
    }
    for (let iteration = 0; iteration < ITERATIONS; ++iteration) {
      let status;
      for (let halving = 0; (status = this.update()) > 1; ++halving) {
        if (!good || halving === HALVINGS) return PROBLEMS[status];
        for (let j = 0; j < 6; ++j) strain[j] = (strain[j] + good[j]) / 2;
      }
      // From a stress without a number no tangent leads anywhere.
      if (!iteration && !Number.isFinite(largest(stress))) return PROBLEMS[1];
      good = strain.slice();
      const found = COMPONENTS.map((_, i) => COMPONENTS.map((_, j) => this.stiffness(i, j)));
      if (!tangent || found.flat().every(Number.isFinite)) tangent = found;
      const residual = free.map((i, k) => stress[i] - targets[k]);
      const stiffness = largest(tangent.flat());
      const scale =
        Math.max(largest(stress), largest(targets)) + LEAST_STRAIN * (Number.isFinite(stiffness) ? stiffness : 0);
      if (Number.isFinite(scale) && residual.every((r) => Math.abs(r) <= TOLERANCE * scale)) {
        this.last = { strain: strain.slice(), stress: stress.slice(), tangent };
        return "";
      }
      // A step that makes too little of what is missing vanish is halved.
      if (largest(residual) > (1 - DECREASE * 0.5 ** cuts) * most && cuts < CUTS) {
        ++cuts;
        for (const i of free) strain[i] += (from[i] - strain[i]) / 2;
        continue;
      }
      [from, most, cuts] = [strain.slice(), largest(residual), 0];
      const move = solve(square(tangent), residual.map((r) => -r));
      free.forEach((i, k) => (strain[i] += move[k]));
    }
    return "The stress was not found";
  }
}
