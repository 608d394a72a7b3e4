/** Memory of all children of one attempt together. */
export const attemptMemoryBytes = 2 ** 31;

/** Memory of all processes of one inspection together. */
export const inspectionMemoryBytes = 2 ** 30;

/** Limit of every file that one inspection writes, and of all of them together. */
export const inspectionFileBytes = 2 ** 26;

/** More than one for each processor, because a request mostly waits for the network. */
const inspectionsPerProcessor = 4;

/** Memory that a usual inspection needs, more than twice over: 46 MB were measured. */
const usualInspectionBytes = 2 ** 27;

const minInspections = 4;

/** Returns the number of inspections at once: a pod has all processors of its node, and a memory limit of its own. */
export function inspectionsAtOnce(processors: number, memoryBytes: number): number {
  const fitting = Math.floor(memoryBytes / usualInspectionBytes);
  return Math.max(minInspections, Math.min(inspectionsPerProcessor * processors, fitting));
}

/** Connections to egress, and those to a gateway, of all clients with one address, such as one inspector or one worker. */
export const maxClientConnections = 256;

/** One inspection needs one at a time. */
const maxInspectionConnections = 16;

/** Returns the connections to egress of one inspection: all that run at once share those of one client. */
export function connectionsOfInspection(inspections: number): number {
  return Math.max(1, Math.min(maxInspectionConnections, Math.floor(maxClientConnections / inspections)));
}

/** During a conversion the parts, the joined file and the result exist at once. */
export const copiesOfFile = 3;
