/** Who waits: a group, such as an organization, and a member of it. Groups take turns, and so do the members of each group. */
export type Tenant = { group: string; member: string };

/**
 * A queue in which nobody waits longer because somebody else has many items in it. `maxOfMember`, `maxOfGroup`: how many items they can have at the
 * same time.
 */
export function createFairQueue<T>(maxOfMember: number, maxOfGroup: number) {
  // A map lists its keys in the order in which they were added. The first group is next, and is then added again behind all others.
  const groups = new Map<string, { size: number; members: Map<string, T[]> }>();
  let size = 0;
  return {
    size: () => size,

    /** Returns false if the member or its group already has as many items as it may. */
    add({ group, member }: Tenant, item: T): boolean {
      const queue = groups.get(group) ?? { size: 0, members: new Map<string, T[]>() };
      const items = queue.members.get(member) ?? [];
      if (queue.size >= maxOfGroup || items.length >= maxOfMember) return false;
      items.push(item);
      queue.members.set(member, items);
      queue.size++;
      groups.set(group, queue);
      size++;
      return true;
    },

    /** Removes and returns the next item. */
    take(): T | undefined {
      const [firstGroup] = groups;
      if (!firstGroup) return undefined;
      const [group, queue] = firstGroup;
      // A group in the map always has a member, and a member always has an item.
      const [firstMember] = queue.members;
      if (!firstMember) return undefined;
      const [member, items] = firstMember;
      const item = items.shift();
      queue.members.delete(member);
      if (items.length > 0) queue.members.set(member, items);
      queue.size--;
      groups.delete(group);
      if (queue.size > 0) groups.set(group, queue);
      size--;
      return item;
    },
  };
}
