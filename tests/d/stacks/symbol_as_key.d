/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 25 and 35: a symbol as a key. */
BEGIN
{
	@[sym((uintptr_t)&`vfs_read)] = count();
	exit(0);
}
/* output:

  vmlinux`vfs_read                                                  1
*/
