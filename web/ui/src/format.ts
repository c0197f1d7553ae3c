// How numbers, sizes and times are written. All of it is short and of stable
// width, so that a table does not move when a value changes.

const units = ["B", "KB", "MB", "GB", "TB"];

export function bytes(n: number): string {
  let i = 0;
  while (n >= 999.5 && i < units.length - 1) {
    n /= 1000;
    i++;
  }
  return `${i === 0 || n >= 99.95 ? n.toFixed(0) : n.toFixed(1)} ${units[i]}`;
}

const grouped = new Intl.NumberFormat("en-US");

export function count(n: number): string {
  return grouped.format(n);
}

/** Things with their number: "1 pod", "2 pods". */
export function plural(n: number, one: string, many = one + "s"): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** An age as kubectl writes it: 42s, 5m12s, 3h4m, 2d3h, 87d, 2y40d. */
export function duration(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 120) return `${s}s`;
  const m = Math.floor(s / 60);
  if (m < 10) return pair(m, "m", s % 60, "s");
  if (m < 180) return `${m}m`;
  const h = Math.floor(m / 60);
  if (h < 8) return pair(h, "h", m % 60, "m");
  if (h < 48) return `${h}h`;
  const d = Math.floor(h / 24);
  if (d < 8) return pair(d, "d", h % 24, "h");
  if (d < 730) return `${d}d`;
  const y = Math.floor(d / 365);
  return y < 8 ? pair(y, "y", d % 365, "d") : `${y}y`;
}

function pair(big: number, bigUnit: string, small: number, smallUnit: string): string {
  return small ? `${big}${bigUnit}${small}${smallUnit}` : `${big}${bigUnit}`;
}

/** Seconds in words of the status line: "0.4 s", "12 s", "5 min", "3 h". */
export function seconds(s: number): string {
  if (s < 10) return `${Math.max(0, s).toFixed(1)} s`;
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} d`;
}

export function rate(perSecond: number): string {
  if (perSecond < 0.05) return "0";
  return perSecond < 10 ? perSecond.toFixed(1) : count(Math.round(perSecond));
}

export function time(ms: number): string {
  return new Date(ms).toLocaleTimeString("en-GB");
}

export function dateTime(ms: number): string {
  const d = new Date(ms);
  return `${d.toLocaleDateString("sv-SE")} ${d.toLocaleTimeString("en-GB")}`;
}

/** A Kubernetes quantity as a number: 250m is 0.25, 1Gi is 1073741824. */
export function quantity(text: string): number | null {
  const m = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/.exec(text);
  if (!m) return null;
  return Number(m[1] + (m[2] ?? "")) * (m[3] ? scale[m[3]]! : 1);
}

const scale: Record<string, number> = {
  n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};
