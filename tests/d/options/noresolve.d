/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of processes have no names, those of -c neither. */
/* flags: -q -x noresolve -c "sleep 0" */
/* output:
  0x1000                                              0x2000                                            
  0x3000                                              0x4000                                            
*/
BEGIN
{
	uaddr(0x1000);
	usym(0x2000);
	printf("\n");
	umod(0x3000);
	ufunc(0x4000);
	exit(0);
}
