/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel has, also where it lets nobody set it: stderr says that. */
/* flags: -l */
/* output:
   ID   PROVIDER            MODULE                          FUNCTION NAME
    4        fbt           vmlinux                          vfs_read entry
    5        fbt           vmlinux                          vfs_read return
*/
fbt::vfs_read:
{
}
