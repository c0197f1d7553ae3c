// Commands to be pasted into a shell. Names come from whoever made the objects.

/** A word as a POSIX shell reads it: one word, nothing expanded. */
export function quoteShell(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}

export function curlOf(address: string, page: string): string {
  return "curl -s " + quoteShell(new URL(address, page).href);
}

/** The command that gets one object. A name that begins with a dash is no option. */
export function kubectlGet(resource: string, namespace: string, name: string): string {
  const words = ["kubectl", "get", resource, ...(namespace ? ["-n", namespace] : []), "-o", "yaml", ...(name.startsWith("-") ? ["--"] : []), name];
  return words.map(quoteShell).join(" ");
}
