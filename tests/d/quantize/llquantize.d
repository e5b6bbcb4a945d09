/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: within each power of ten, ten linear buckets. */
BEGIN
{
	@ = llquantize(35, 10, 0, 6, 10);
	@ = llquantize(36, 10, 0, 6, 10);
	@ = llquantize(52, 10, 0, 6, 10);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
              20 |                                         0        
              30 |@@@@@@@@@@@@@@@@@@@@@@@@@@@              2        
              40 |                                         0        
              50 |@@@@@@@@@@@@@                            1        
              60 |                                         0        

*/
