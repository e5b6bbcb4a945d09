/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
io:::start
{
	start[args[0]->b_edev, args[0]->b_blkno] = timestamp;
}
io:::done
/start[args[0]->b_edev, args[0]->b_blkno]/
{
	this->t = timestamp - start[args[0]->b_edev, args[0]->b_blkno];
	@ = quantize(this->t);
	start[args[0]->b_edev, args[0]->b_blkno] = 0;
}
