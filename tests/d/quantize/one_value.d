/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 37: one bucket with an empty one on each side. */
BEGIN
{
	@ = quantize(1);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
               0 |                                         0        
               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
               2 |                                         0        

*/
