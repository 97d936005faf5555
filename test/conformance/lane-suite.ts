import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Receipt } from '../../src/core/job.ts'
import type { Lane, Sink } from '../../src/core/ports.ts'
import type { LoadedExtent } from '../../src/engine/extent-builder.ts'
import { endPartitions, openForLanes, type SinkUnderTest, writeExtent } from './sink-suite.ts'
import { o } from './store-subject.ts'

/** The one suite of the contract Lane; the lanes of every sink that takes extents in any order pass it unchanged. */
export function describeLane(name: string, setup: () => Promise<SinkUnderTest>): void {
  describe(`lane: ${name}`, () => {
    let subject: SinkUnderTest
    let sink: Sink
    let extents: readonly LoadedExtent[]
    beforeEach(async () => {
      subject = await setup()
      const opened = await openForLanes(subject)
      sink = opened.sink
      extents = opened.extents
    })
    afterEach(async () => {
      await sink.close()
      await subject.close()
    })

    const expectFinished = async (receipts: readonly Receipt[]): Promise<void> => {
      await endPartitions(sink, subject, receipts)
      expect((await sink.finish(receipts, o)).lost).toEqual([])
      const all = subject.contents(subject.partitions.map((partition) => partition.id))
      expect((await subject.visible()).toSorted()).toEqual(all.toSorted())
      expect(await subject.leftovers()).toEqual([])
    }

    it('takes extents one after the other, from any partition, and gives each its receipt', async () => {
      const lane = await sink.openLane(o)
      const receipts: Receipt[] = []
      for (const loaded of extents.toReversed()) receipts.push(await writeExtent(lane, loaded))
      expect(receipts.map((receipt) => receipt.extent)).toEqual(extents.toReversed().map(({ extent }) => extent))
      await lane.close()
      await expectFinished(receipts)
    })

    it('can be aborted at any step, twice, and its work be dealt to another lane', async () => {
      const stages: ((lane: Lane, loaded: LoadedExtent) => Promise<unknown>)[] = [
        () => Promise.resolve(),
        (lane, { extent }) => lane.begin(extent),
        async (lane, { extent, batches }) => {
          await lane.begin(extent)
          if (batches[0] !== undefined) await lane.write(batches[0])
        },
        async (lane, { extent, batches }) => {
          await lane.begin(extent)
          for (const batch of batches) await lane.write(batch)
        },
      ]
      for (const stage of stages) {
        const broken = await sink.openLane(o)
        const [first] = extents
        if (first !== undefined) await stage(broken, first)
        await broken.abort(new Error('broken'))
        await broken.abort(new Error('broken'))
      }
      const receipts: Receipt[] = []
      const lane = await sink.openLane(o)
      for (const loaded of extents) receipts.push(await writeExtent(lane, loaded))
      await lane.close()
      await expectFinished(receipts)
    })

    it('takes with it what it sealed and was not durable, and nothing of other lanes', async () => {
      const broken = await sink.openLane(o)
      const lane = await sink.openLane(o)
      const receipts: Receipt[] = []
      const voided: LoadedExtent[] = []
      for (const [i, loaded] of extents.entries()) {
        const receipt = await writeExtent(i % 2 === 0 ? broken : lane, loaded)
        if (i % 2 === 0 && !receipt.durable) voided.push(loaded)
        else receipts.push(receipt)
      }
      await broken.abort(new Error('broken'))
      const third = await sink.openLane(o)
      for (const loaded of voided) receipts.push(await writeExtent(third, loaded))
      await third.close()
      await lane.close()
      await expectFinished(receipts)
    })

    it('lets an idle lane end without a word from it', async () => {
      const idle = await sink.openLane(o)
      await idle.close()
      const lane = await sink.openLane(o)
      const receipts: Receipt[] = []
      for (const loaded of extents) receipts.push(await writeExtent(lane, loaded))
      await lane.close()
      await expectFinished(receipts)
    })
  })
}
