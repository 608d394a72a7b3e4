/** Memory of all children of one attempt together. */
export const attemptMemoryBytes = 2 ** 31;

/** Memory of all processes of one inspection together. */
export const inspectionMemoryBytes = 2 ** 30;

/** Files of one inspection. */
export const inspectionFileBytes = 2 ** 26;

/** Inspections at once. More than one for each processor, because a request mostly waits for the network. */
export const inspectionsPerProcessor = 4;

/** During a conversion the parts, the joined file and the result exist at once. */
export const copiesOfFile = 3;
